"""Of /v0 what is written: sends, answers, forwards and drafts, also those on the clock."""
