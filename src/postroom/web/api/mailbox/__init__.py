"""Messages and search, over REST."""
