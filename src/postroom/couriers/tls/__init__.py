"""What a domain asks of the way to its servers: MTA-STS, DANE, or as much as there is."""
