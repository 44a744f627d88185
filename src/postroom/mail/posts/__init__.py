"""What mail services post to us: each in its own form, read and proved; bytes in, values out."""
