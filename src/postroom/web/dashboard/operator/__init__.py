"""For the operator: health, the queue, deliverability and the accounts."""
