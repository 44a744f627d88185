"""The words of each language, one file a language; README.md tells how to add one."""
