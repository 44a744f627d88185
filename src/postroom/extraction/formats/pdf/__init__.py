"""PDF: the words of its pages in the order of reading, what was filled in, and who signed."""
