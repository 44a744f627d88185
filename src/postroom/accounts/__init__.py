"""Accounts, pods, keys and people, and what each may do."""
