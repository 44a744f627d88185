"""Rules, keys, pods, domains, suppressed addresses and the audit log: a page each."""
