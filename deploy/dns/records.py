"""Reads the records of `postroom domains get dom_… --json` from standard input."""

import json
import sys

TTL_SECONDS = 3600
STRING_CHARACTERS = 255


def read():
    given = json.load(sys.stdin)
    domains = given["data"] if "data" in given else [given]
    return [record for domain in domains for record in domain["records"]]


def quoted(text):
    """In strings of at most 255 characters, as zone files have them."""
    starts = range(0, len(text), STRING_CHARACTERS)
    return " ".join(f'"{text[start : start + STRING_CHARACTERS]}"' for start in starts)
