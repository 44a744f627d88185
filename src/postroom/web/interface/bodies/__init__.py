"""The bodies and queries of requests."""
