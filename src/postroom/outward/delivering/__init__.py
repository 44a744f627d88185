"""A claimed delivery of mail before it is tried: what is known of it, and whether it may go now."""
