"""Emails whose bytes are kept: signed, encrypted, or redirected as they came."""
