"""Measures this checkout, and its peers side by side in the same run: `python -m bench [NAME ...]`."""
