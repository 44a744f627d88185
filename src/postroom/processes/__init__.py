"""Parts of a process: threads, loops, file descriptors, counters and child processes."""
