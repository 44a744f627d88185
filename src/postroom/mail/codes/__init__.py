"""One-time codes: recognised by form, position, and the words around them."""
