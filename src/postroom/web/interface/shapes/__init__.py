"""What answers carry."""
