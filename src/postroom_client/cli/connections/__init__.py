"""Commands that connect mailboxes elsewhere and mail services, step by step."""
