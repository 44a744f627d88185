"""Small previews of pictures and files."""
