"""What has happened, over REST."""
