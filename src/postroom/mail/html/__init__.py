"""HTML as mail has it: read in one pass, shown as text, judged by what a reader would see."""
