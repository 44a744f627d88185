"""What the server itself has to tell people: letters to its users, and notifications."""
