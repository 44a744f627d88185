"""What callers may ask for, one file per noun: each operation is a verb, with its request and answer fields.

A verb is run in one transaction and does all that belongs to it: checks, change, audit record, event, bells.
"""
