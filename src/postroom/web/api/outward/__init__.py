"""Out of the house, over REST."""
