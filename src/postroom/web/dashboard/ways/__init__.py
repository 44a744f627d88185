"""Pages that lead to mail from outside and to the world."""
