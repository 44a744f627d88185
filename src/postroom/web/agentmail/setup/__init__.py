"""Of /v0 all that is not mail: pods, keys, domains, lists, webhooks, metrics."""
