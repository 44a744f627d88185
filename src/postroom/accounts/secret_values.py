"""Secrets that the server creates once and all its nodes share."""

import secrets

from postroom.storage.database import Tx, insert_new

LETTER = "letter"  # signs the mark of the server's own letters
REVIEW = "review"  # signs the addresses and links of reviewers
RETURN_PATH = "return-path"  # signs the envelope senders of outgoing email


def make_missing(tx: Tx, *names: str) -> None:
    for name in names:
        insert_new(tx, "secrets", name=name, value=secrets.token_bytes(32))


def get(tx: Tx, name: str) -> bytes:
    row = tx.one("select value from secrets where name = :name", name=name)
    assert row is not None, f"the secret {name} is made at start"
    return bytes(row["value"])
