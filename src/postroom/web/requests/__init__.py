"""Checks of every request before anything is done: its key, rate, size and origin."""
