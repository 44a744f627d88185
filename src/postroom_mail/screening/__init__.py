"""Signals against an email: named rules, each with its excerpt, and the resulting verdict."""
