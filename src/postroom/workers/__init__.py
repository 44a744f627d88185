"""Processes that receive and parse mail: the worker, its supervisor, and the channel between them."""
