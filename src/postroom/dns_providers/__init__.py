"""DNS providers: services and servers in whose zones the records of a domain are set."""
