"""Reports of other servers about a domain: DMARC (RFC 9990) and TLS (RFC 8460). All input is untrusted."""
