"""Hands events to a local program, in order and at least once."""
