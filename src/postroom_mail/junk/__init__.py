"""Junk: what an email is made of, as numbers, and the linear model that says how likely it is junk."""
