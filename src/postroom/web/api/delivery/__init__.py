"""Connections, over REST."""
