"""Checks of everything stored: rows, large emails, the search index, counters."""
