"""What a process is made of: its threads, loops, files and counters, and its child processes."""
