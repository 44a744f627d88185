"""What callers may ask of this room: each operation with the fields of its request and of its answer."""
