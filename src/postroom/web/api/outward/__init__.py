"""Mail and webhooks out, over REST."""
