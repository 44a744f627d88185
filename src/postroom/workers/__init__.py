"""Processes that take mail in and read it: the worker, its supervisor, and the channel between them."""
