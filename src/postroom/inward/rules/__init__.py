"""Rules for email that comes in: which match, and what they do."""
