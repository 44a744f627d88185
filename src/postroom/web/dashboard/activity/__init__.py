"""What came and went."""
