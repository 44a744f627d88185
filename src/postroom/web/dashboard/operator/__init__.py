"""For the operator: health, the queue, delivery results, feedback and the accounts."""
