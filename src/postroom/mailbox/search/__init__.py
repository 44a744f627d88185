"""Finding messages: the index that follows them, and the answers it gives."""
