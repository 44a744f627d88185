"""Every call of the interface: what it carries and what it returns."""
