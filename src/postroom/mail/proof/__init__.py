"""Who really sent a mail, and the signature under what is sent."""
