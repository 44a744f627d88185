"""Postroom: the post office for software agents."""

__version__ = "0.1.0"
