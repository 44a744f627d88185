"""Writing in /v0: sends, replies, forwards and drafts, also scheduled ones."""
