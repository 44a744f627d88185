"""Calls and events over the network."""
