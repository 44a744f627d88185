"""Events to WebSocket clients: frames, streams, and one hub an account."""
