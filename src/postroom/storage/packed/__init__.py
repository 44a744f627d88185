"""Bytes that are kept small."""
