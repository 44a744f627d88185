"""What mails are written from."""
