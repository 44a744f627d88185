"""Reports of other servers about a domain: DMARC (RFC 9990) and TLS (RFC 8460). Each byte is a stranger's."""
