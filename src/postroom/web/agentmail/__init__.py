"""The /v0 interface, spoken by the `agentmail` packages: other names for the same operations and rows."""
