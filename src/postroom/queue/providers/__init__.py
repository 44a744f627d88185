"""Receiving providers: how fast each is written to, how much of a new domain, and what became of the mail."""
