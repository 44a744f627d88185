"""Who acts by itself: each key and grant, what it does now, and what it did."""
