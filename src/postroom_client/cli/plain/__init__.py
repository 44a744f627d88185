"""Commands that are one operation each: a table says how they are called and what they show."""
