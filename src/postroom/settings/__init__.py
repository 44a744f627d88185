"""What the values of settings may be."""
