"""Messages of the server itself: letters to its users, and notifications."""
