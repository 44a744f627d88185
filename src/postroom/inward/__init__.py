"""Mail in."""
