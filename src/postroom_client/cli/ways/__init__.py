"""Ways in and out: mailboxes elsewhere and mail services, led through step by step."""
