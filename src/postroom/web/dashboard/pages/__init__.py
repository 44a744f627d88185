"""Every page next to its template."""
