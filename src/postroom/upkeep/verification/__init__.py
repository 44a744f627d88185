"""Everything that is stored, looked at once: rows, large mails, the search index, counters."""
