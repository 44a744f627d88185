"""How calls and events get over the network."""
