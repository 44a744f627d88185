"""How a page shows what it knows: templates, files, plots, tables, and HTML of strangers."""
