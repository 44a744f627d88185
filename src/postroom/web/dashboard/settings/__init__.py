"""Inboxes, keys, pods, users, rules, domains, notifications, suppressions, the audit log: a page each."""
