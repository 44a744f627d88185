"""Commands that are one operation each, described by a table: how they are called and what they show."""
