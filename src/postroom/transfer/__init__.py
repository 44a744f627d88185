"""Mail and whole servers in files: import and export of mail, backup and restore."""
