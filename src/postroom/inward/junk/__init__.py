"""Whether a received email is junk: its words, its sender, and what others say of both."""
