"""What callers may ask for, a file a noun: each operation as a verb, with the fields of request and answer.

A verb is run in one transaction and does all that belongs to it: checks, change, audit record, event, bells.
"""
