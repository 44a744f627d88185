"""What each database does in its own way."""
