"""The fields of a send, of its files, addresses and appointment, and how they are read."""
