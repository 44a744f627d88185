"""The CSS a mail brings along, as far as it decides whether text is seen."""
