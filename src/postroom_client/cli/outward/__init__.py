"""Sending, drafts and approvals."""
