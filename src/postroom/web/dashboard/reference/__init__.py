"""The API reference at `/docs`, and the key with which a signed-in person tries it."""
