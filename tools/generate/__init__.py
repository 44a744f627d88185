"""Makes the clients and the reference from the description of the interface."""
