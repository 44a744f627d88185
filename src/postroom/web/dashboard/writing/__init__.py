"""Pages of what mails are written from."""
