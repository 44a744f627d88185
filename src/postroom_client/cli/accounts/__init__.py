"""Accounts, keys and rules."""
