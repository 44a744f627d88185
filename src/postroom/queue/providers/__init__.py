"""Receiving providers: how fast each is written to, warm-up of new domains, and counts of results."""
