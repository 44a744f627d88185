"""HTML in mail: read in one pass, shown as text, and checked for what a reader would see."""
