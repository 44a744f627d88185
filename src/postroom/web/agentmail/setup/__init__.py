"""Everything of /v0 besides mail: pods, keys, domains, lists, webhooks, metrics."""
