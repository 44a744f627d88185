"""Writes that share a commit, and those that wait for a lock."""
