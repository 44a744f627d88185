"""Requests and answers of the interface: bodies, shapes, and the document that describes them."""
