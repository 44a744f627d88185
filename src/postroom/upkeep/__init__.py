"""What the server removes while it runs: expired rows, deleted accounts and inboxes, unused blobs."""
