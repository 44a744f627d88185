"""The fields of answers."""
