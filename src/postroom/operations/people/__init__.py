"""What may be asked for about people."""
