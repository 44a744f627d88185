"""What is said between client and server: bytes in, effects out; no socket."""
