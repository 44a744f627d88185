"""Writing mail: its bytes, quotes and hash, and the signed addresses for its answers."""
