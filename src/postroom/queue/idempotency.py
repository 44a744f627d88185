"""Idempotency: one key, one mail. A key is kept for 24 hours after its successful send."""

import hashlib
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom.clock import HOUR
from postroom.errors import BadRequest, IdempotencyKeyReused, MissingIdempotencyKey
from postroom.storage.database import Row, Tx

LIFETIME = 24 * HOUR
VERSION = "2:"  # of the request hash, which begins with it


class Claim(Struct, frozen=True):
    """A key, and the answer to store for it."""

    account_id: str
    key: str
    request_hash: str
    answer: bytes
    now: int


_visible = re.compile(r"[\x21-\x7e]{1,255}")


def require_key(value: str | None) -> str:
    if not value:
        raise MissingIdempotencyKey(
            "Send the header Idempotency-Key: a new UUID for each mail, the same one for each retry of it."
        )
    if not _visible.fullmatch(value):
        raise BadRequest("Idempotency-Key must be 1 to 255 visible characters.", field="Idempotency-Key")
    return value


def hash_request(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return VERSION + digest.hexdigest()


def find_answer(tx: Tx, account_id: str, key: str, request_hash: str, now: int) -> bytes | None:
    row = _find(tx, account_id, key, now)
    return None if row is None else _same_request(row, request_hash)


def find_any_answer(tx: Tx, account_id: str, key: str, now: int) -> bytes | None:
    """The stored answer of a key, whatever its request was."""
    row = _find(tx, account_id, key, now)
    return None if row is None else bytes(row["answer"])


def _find(tx: Tx, account_id: str, key: str, now: int) -> Row | None:
    return tx.one(
        "select request_hash, answer from idempotency_keys"
        " where account_id = :account_id and idempotency_key = :key and created_at > :oldest",
        account_id=account_id,
        key=key,
        oldest=now - LIFETIME,
    )


def claim_all(tx: Tx, claims: Sequence[Claim]) -> list[bytes | None]:
    """None: the key is ours with this answer, once committed. Else the answer of the first request.

    A key may occur only once. A second caller waits at the insert until the first has committed or failed.
    """
    rows = tx.many(
        "insert into idempotency_keys (account_id, idempotency_key, request_hash, answer, created_at)"
        " values :rows on conflict (account_id, idempotency_key) do update set"
        " request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at"
        f" where idempotency_keys.created_at <= excluded.created_at - {LIFETIME}"
        " returning account_id, idempotency_key",
        sorted((each.account_id, each.key, each.request_hash, each.answer, each.now) for each in claims),
    )
    ours = {(row["account_id"], row["idempotency_key"]) for row in rows}
    return [
        None
        if (each.account_id, each.key) in ours
        else find_answer(tx, each.account_id, each.key, each.request_hash, each.now)
        for each in claims
    ]


def set_answer(tx: Tx, account_id: str, key: str, answer: bytes) -> None:
    tx.run(
        "update idempotency_keys set answer = :answer"
        " where account_id = :account_id and idempotency_key = :key",
        answer=answer,
        account_id=account_id,
        key=key,
    )


def _same_request(row: Row, request_hash: str) -> bytes:
    if not _may_be_same(row["request_hash"], request_hash):
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used for another request. Use a new one for a new mail."
        )
    return bytes(row["answer"])


def _may_be_same(known: str, asked: str) -> bool:
    """A hash of another server version cannot be compared. Its key has sent a mail and must not send a second
    one: a retry after an upgrade gets the answer of the first.
    """
    return known == asked or not known.startswith(VERSION)


def note_taken(tx: Tx, taken: Sequence[tuple[str, str, int, int, int]]) -> list[bool]:
    """Records content fetched from an external mailbox; returns for each whether it is the first time.

    A row is a connection, the hash of a content, its UIDVALIDITY and UID there, and the time.
    """
    returned = tx.many(
        "insert into taken_mails (connection_id, content_hash, uid_validity, uid, taken_at) values :rows"
        " on conflict do nothing returning connection_id, content_hash",
        taken,
    )
    new = {(row["connection_id"], row["content_hash"]) for row in returned}
    return _each_first((each[:2] for each in taken), new)


def note_handovers(tx: Tx, handovers: Sequence[tuple[str, str, int]]) -> list[bool]:
    """Records content handed to an inbox; returns for each whether it is the first time."""
    returned = tx.many(
        "insert into handovers (inbox_id, content_hash, received_at) values :rows on conflict do nothing"
        " returning inbox_id, content_hash",
        handovers,
    )
    new = {(row["inbox_id"], row["content_hash"]) for row in returned}
    return _each_first((each[:2] for each in handovers), new)


def _each_first(noted: Iterable[tuple[str, str]], new: set[tuple[str, str]]) -> list[bool]:
    """For each one whether it is new and appears for the first time."""
    answers = []
    for each in noted:
        answers.append(each in new)
        new.discard(each)
    return answers
