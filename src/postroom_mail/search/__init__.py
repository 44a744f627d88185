"""Tokens of emails and queries for the search index; pure, like all of `mail`."""
