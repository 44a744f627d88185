"""Search: the index of messages, and queries over it."""
