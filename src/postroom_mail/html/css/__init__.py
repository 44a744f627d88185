"""CSS in mail, as far as it decides whether text is visible."""
