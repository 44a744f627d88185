"""The operator's own judge, asked about mail after its event."""
