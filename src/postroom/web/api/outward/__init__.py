"""Sends, drafts and templates, over REST."""
