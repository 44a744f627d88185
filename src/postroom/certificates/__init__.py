"""Certificates from an authority that speaks ACME: obtained, renewed, and given to the listeners."""
