"""What requests carry."""
