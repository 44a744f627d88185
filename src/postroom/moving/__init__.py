"""Mail and whole servers on the move: export and import of mail, backup and restore."""
