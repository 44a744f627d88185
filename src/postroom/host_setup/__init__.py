"""Makes a machine a mail host: settings, system service, DNS records, and a look at what works."""
