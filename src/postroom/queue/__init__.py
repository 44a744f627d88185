"""Deliveries and other work to be done, claimed by leases."""
