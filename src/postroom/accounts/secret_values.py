"""Secrets that the server makes for itself once and all its nodes share."""

import secrets

from postroom.storage.database import Tx

RETURN_PATH = "return-path"  # signs the envelope senders of mail that leaves


def make_missing(tx: Tx, *names: str) -> None:
    for name in names:
        tx.run(
            "insert into secrets (name, value) values (:name, :value) on conflict (name) do nothing",
            name=name,
            value=secrets.token_bytes(32),
        )


def get(tx: Tx, name: str) -> bytes:
    row = tx.one("select value from secrets where name = :name", name=name)
    assert row is not None, f"the secret {name} is made at start"
    return bytes(row["value"])
