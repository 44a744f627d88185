"""The content of an email: links, new words of a reply, and appointments."""
