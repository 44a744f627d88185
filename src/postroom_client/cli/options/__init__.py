"""What operations take, and the options of commands that are made from it."""
