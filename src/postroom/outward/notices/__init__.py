"""Messages of the server itself: emails to its users, and notifications."""
