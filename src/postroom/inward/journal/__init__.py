"""The journal: mail that has its 250 and is on its way into its inboxes."""
