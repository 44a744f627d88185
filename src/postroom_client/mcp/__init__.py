"""The tools for an agent, and the server that offers them."""
