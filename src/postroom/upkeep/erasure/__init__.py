"""Erases a contact: everything but the audit log's facts, in steps that survive the end of a node."""
