"""Mail that is to be written: its bytes, its quotes, its hash, and the addresses it answers to."""
