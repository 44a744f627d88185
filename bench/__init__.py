"""Load programs against a running server, and against its peers."""
