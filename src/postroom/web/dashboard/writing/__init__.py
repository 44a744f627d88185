"""Pages for templates."""
