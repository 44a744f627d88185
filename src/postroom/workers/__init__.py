"""Mail in, read in processes of its own: the worker, its foreman, and the line between them."""
