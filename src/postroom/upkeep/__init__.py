"""What is done to the house while it runs: what expired or was deleted goes, old rows get a new form."""
