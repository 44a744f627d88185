"""Agents: each key and grant, its current state and its history."""
