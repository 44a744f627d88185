"""The words of each language, one file per language; README.md explains how to add one."""
