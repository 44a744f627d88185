"""How TLS sessions with other servers began, and the reports about it (RFC 8460)."""
