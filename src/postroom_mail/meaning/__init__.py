"""What an email means: the readers of text, kind, links, appointment and report, put together."""
