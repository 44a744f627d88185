"""Accounts and domains, over REST."""
