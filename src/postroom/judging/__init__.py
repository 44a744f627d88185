"""A judge of the operator's own, asked about mail that has already been told."""
