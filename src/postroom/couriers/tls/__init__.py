"""TLS that a domain asks for on the way to its servers: MTA-STS, DANE, or opportunistic."""
