"""Written conversations with an inbox, and how they are played."""
