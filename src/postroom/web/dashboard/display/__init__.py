"""How pages show their data: templates, assets, plots, tables, and HTML of strangers."""
