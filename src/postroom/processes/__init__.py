"""What a process consists of: threads, loops, file descriptors, counters and child processes."""
