"""What connections need beside a transaction."""
