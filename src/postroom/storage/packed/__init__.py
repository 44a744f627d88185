"""Compression of stored bytes."""
