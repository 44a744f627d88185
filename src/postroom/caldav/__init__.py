"""CalDAV (RFC 4791), with scheduling (RFC 6638) and synchronisation (RFC 6578): calendars in mail clients."""
