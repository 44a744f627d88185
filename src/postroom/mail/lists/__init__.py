"""Mail to many: unsubscribing."""
