"""What people call things on the command line, and what its help says."""
