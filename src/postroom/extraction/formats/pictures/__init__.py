"""Pictures, drawn small."""
