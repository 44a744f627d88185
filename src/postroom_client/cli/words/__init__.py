"""Names and help texts of the command line."""
