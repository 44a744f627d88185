"""Mail to many: the way out that it offers each recipient."""
