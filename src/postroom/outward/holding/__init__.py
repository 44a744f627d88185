"""Mail that does not leave at once: why it waits, who decides, and what happens then."""
