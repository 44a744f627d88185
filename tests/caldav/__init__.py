"""CalDAV over HTTP, as calendar clients speak it."""
