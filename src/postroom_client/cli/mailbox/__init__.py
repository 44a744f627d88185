"""Commands to read mail: inboxes, threads, messages, attachments, search and waiting."""
