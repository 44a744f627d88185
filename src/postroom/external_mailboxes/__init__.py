"""External mailboxes read by IMAP, and posts of mail services."""
