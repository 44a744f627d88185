"""For who runs the server: health, the queue, deliverability and the accounts."""
