"""Connections in and out: external mailboxes and mail services, set up step by step."""
