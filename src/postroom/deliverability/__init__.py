"""Whether mail arrives: the records of a domain, and what the world can see of this server."""
