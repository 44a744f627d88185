"""The content of a mail: links, new words of a reply, and appointments."""
