"""Mail from and to elsewhere: mailboxes read by IMAP, and what mail services post."""
