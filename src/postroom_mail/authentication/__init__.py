"""Sender authentication, and signatures of outgoing mail."""
