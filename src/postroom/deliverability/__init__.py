"""Whether mail arrives: the records of a domain, and how other servers see this one."""
