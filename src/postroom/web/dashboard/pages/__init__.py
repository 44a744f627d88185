"""Every page beside its template."""
