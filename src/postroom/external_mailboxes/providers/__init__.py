"""Posts of mail services: each in its own format, verified and read; bytes in, values out."""
