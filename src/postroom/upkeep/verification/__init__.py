"""Checks of everything stored: rows, large mails, the search index, counters."""
