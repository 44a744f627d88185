"""Reads, judges and writes email: bytes in, values out."""

__version__ = "1.0.0"
