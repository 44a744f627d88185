"""Secrets that the server creates once and all its nodes share."""

import secrets

from postroom.storage.database import Tx, insert_new

SYSTEM_EMAIL = "letter"  # signs the mark of the server's own emails
REVIEW = "review"  # signs the addresses and links of reviewers
ORIGINS = "origins"  # makes the hashes of values in emails
RETURN_PATH = "return-path"  # signs the envelope senders of outgoing email


def make_missing(tx: Tx, *names: str) -> None:
    for name in names:
        insert_new(tx, "secrets", name=name, value=secrets.token_bytes(32))


def find(tx: Tx, name: str) -> bytes | None:
    row = tx.one("select value from secrets where name = :name", name=name)
    return None if row is None else bytes(row["value"])


def get(tx: Tx, name: str) -> bytes:
    found = find(tx, name)
    assert found is not None, f"the secret {name} is made at start"
    return found
