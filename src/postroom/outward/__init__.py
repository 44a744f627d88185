"""Mail and webhooks out."""
