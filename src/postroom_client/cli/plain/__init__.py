"""Commands that are one operation each. A table says how they are called and what they show."""
