"""Events to WebSocket clients: frames, streams, and one hub per account."""
