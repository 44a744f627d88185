"""Inboxes, threads, messages and their parts."""
