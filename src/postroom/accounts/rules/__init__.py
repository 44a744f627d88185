"""Limits, policies, approval and pauses of accounts, pods and inboxes."""
