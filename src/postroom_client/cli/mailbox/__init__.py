"""What is there to read."""
