"""PDF: the text of its pages in reading order, filled-in forms, and signatures."""
