"""What the measurements compare with: the plain way to do the same work."""
