"""Domains, over REST."""
