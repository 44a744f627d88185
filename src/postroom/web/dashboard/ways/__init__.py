"""Pages for connections with external mailboxes and services."""
