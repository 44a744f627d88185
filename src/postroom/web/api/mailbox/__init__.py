"""What is there to read, over REST."""
