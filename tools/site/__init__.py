"""The documentation site: its theme, and what a build adds to the pages. `make docs` runs it with mkdocs."""
