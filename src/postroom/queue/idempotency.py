"""Idempotency: one key, one email. A key is kept for 24 hours after its successful send."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from postroom.accounts.scope import Scope
from postroom.clock import HOUR
from postroom.errors import BadRequest, IdempotencyKeyReused, MissingIdempotencyKey
from postroom.limits import IDEMPOTENCY_HOURS, VISIBLE_CHARACTERS
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Row, Tx

LIFETIME = IDEMPOTENCY_HOURS * HOUR
VERSION = "2:"  # of the request hash, which begins with it


class Claim(Struct, frozen=True):
    """A key, and the answer to store for it."""

    scope: Scope
    inbox: Inbox
    key: str
    request_hash: str
    answer: bytes
    now: int


_visible = re.compile(rf"[\x21-\x7e]{{1,{VISIBLE_CHARACTERS}}}")


def require_key(value: str | None) -> str:
    if not value:
        raise MissingIdempotencyKey(
            "Send the header Idempotency-Key: a new UUID for each email, the same one for each retry of it."
        )
    if not _visible.fullmatch(value):
        raise BadRequest(
            f"Idempotency-Key must be 1 to {VISIBLE_CHARACTERS} visible characters.", field="Idempotency-Key"
        )
    return value


def hash_request(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return VERSION + digest.hexdigest()


def find_answer(
    tx: Tx, scope: Scope, inbox: Inbox | None, key: str, request_hash: str, now: int
) -> bytes | None:
    """Return the answer to the same request of this inbox; raise IdempotencyKeyReused for another request.

    Uses of the key in inboxes outside `scope` count as none.
    """
    rows = _find(tx, scope, inbox, key, now)
    if not rows:
        return None
    same = [row for row in rows if _may_be_same(row["request_hash"], request_hash)]
    if not same:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used for another request. Use a new one for a new mail."
        )
    return bytes(max(same, key=lambda row: row["request_hash"] == request_hash)["answer"])


def find_any_answer(tx: Tx, scope: Scope, key: str, now: int) -> bytes | None:
    """Return the stored answer of a key, whatever its request was."""
    rows = _find(tx, scope, None, key, now)
    return bytes(rows[0]["answer"]) if rows else None


def own_name(scope: Scope, key: str) -> str:
    """Return the name for a key that is taken outside `scope`. No key has a blank, so the name is free."""
    return key if scope.is_account else f"{key} {scope.owner[1]}"


def _find(tx: Tx, scope: Scope, inbox: Inbox | None, key: str, now: int) -> list[Row]:
    """Return the rows in scope, also those of wider and narrower API keys: a retry may use another."""
    own = own_name(scope, key)
    rows = tx.all(
        "select idempotency_key, request_hash, answer from idempotency_keys where account_id = :account_id"
        " and idempotency_key in (:key, :own, :of_pod, :of_inbox) and created_at > :oldest",
        account_id=scope.account_id,
        key=key,
        own=own,
        of_pod=own if inbox is None else f"{key} {inbox.pod_id}",
        of_inbox=own if inbox is None else f"{key} {inbox.id}",
        oldest=now - LIFETIME,
    )
    return [row for row in rows if row["idempotency_key"] == own or _is_within(tx, scope, row["answer"])]


def _is_within(tx: Tx, scope: Scope, answer: bytes) -> bool:
    return scope.is_account or inboxes.are_within(tx, scope, [msgspec.json.decode(answer)["inboxId"]])


def claim_all(tx: Tx, claims: Sequence[Claim]) -> list[bytes | None]:
    """Claim the keys. None: the key is ours with this answer, once committed. Else the first answer.

    A key may occur only once. A second caller waits at the insert until the first has committed or failed. A
    key that is taken outside the caller's scope is claimed under a separate name.
    """
    ours = _insert(tx, [(each, each.key) for each in claims])
    known = {
        id(each): find_answer(tx, each.scope, each.inbox, each.key, each.request_hash, each.now)
        for each in claims
        if (each.scope.account_id, each.key) not in ours
    }
    unseen = [each for each in claims if id(each) in known and known[id(each)] is None]
    if unseen:
        ours = _insert(tx, [(each, own_name(each.scope, each.key)) for each in unseen])
        for each in unseen:
            if (each.scope.account_id, own_name(each.scope, each.key)) not in ours:
                known[id(each)] = find_answer(
                    tx, each.scope, each.inbox, each.key, each.request_hash, each.now
                )
    return [known.get(id(each)) for each in claims]


def _insert(tx: Tx, named: Sequence[tuple[Claim, str]]) -> set[tuple[str, str]]:
    """Return the accounts and names that were free."""
    rows = tx.many(
        "insert into idempotency_keys (account_id, idempotency_key, request_hash, answer, created_at)"
        " values :rows on conflict (account_id, idempotency_key) do update set"
        " request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at"
        f" where idempotency_keys.created_at <= excluded.created_at - {LIFETIME}"
        " returning account_id, idempotency_key",
        sorted(
            (each.scope.account_id, name, each.request_hash, each.answer, each.now) for each, name in named
        ),
    )
    return {(row["account_id"], row["idempotency_key"]) for row in rows}


def set_answer(tx: Tx, scope: Scope, key: str, known: bytes, answer: bytes) -> None:
    """Replaces the answer that was stored for a claim."""
    tx.run(
        "update idempotency_keys set answer = :answer where account_id = :account_id"
        " and idempotency_key in (:key, :own) and answer = :known",
        answer=answer,
        account_id=scope.account_id,
        key=key,
        own=own_name(scope, key),
        known=known,
    )


def _may_be_same(known: str, asked: str) -> bool:
    """Return whether both may be the same request.

    A hash of another server version cannot be compared. Its key sent an email and must not send a second one:
    a retry after an upgrade gets the answer of the first.
    """
    return known == asked or not known.startswith(VERSION)


def record_taken(tx: Tx, taken: Sequence[tuple[str, str, int, int, int]]) -> list[bool]:
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


def record_handovers(tx: Tx, handovers: Sequence[tuple[str, str, int]]) -> list[bool]:
    """Records content handed to an inbox; returns for each whether it is the first time."""
    returned = tx.many(
        "insert into handovers (inbox_id, content_hash, received_at) values :rows on conflict do nothing"
        " returning inbox_id, content_hash",
        handovers,
    )
    new = {(row["inbox_id"], row["content_hash"]) for row in returned}
    return _each_first((each[:2] for each in handovers), new)


def _each_first(noted: Iterable[tuple[str, str]], new: set[tuple[str, str]]) -> list[bool]:
    """Return for each one whether it is new and appears for the first time."""
    answers = []
    for each in noted:
        answers.append(each in new)
        new.discard(each)
    return answers
