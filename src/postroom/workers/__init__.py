"""Mail in, read in processes of its own: the worker, its supervisor, and the channel between them."""
