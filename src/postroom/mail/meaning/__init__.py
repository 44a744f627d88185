"""What a mail says: codes, links, new words, appointments, and what kind of mail it is."""
