"""Entries of the audit log: rows, and how they are shown, hashed and exported."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from postroom.accounts.actors import Actor
from postroom.accounts.signing_keys import canonical, digest
from postroom.clock import to_iso
from postroom.fields import AnyJson, Timestamp, show_item
from postroom.storage.database import Row, item_from_row

ERASED_BY = "The entry that says what an erasure left of this one. `hash` is that of the whole entry."
SIGNED_IN = "How the person had signed in: `passkey`, `link`, `openid` or `key`; empty for an API key."


class Entry(Struct, frozen=True):
    id: str
    pod_id: str | None
    inbox_id: str | None
    actor: Actor
    address: str  # the client's network address
    action: str
    target: str
    before: str | None
    after: str | None
    count: int
    created_at: int
    user_agent: str
    asked_at: int | None  # when a person clicked, for what was done later
    trace_id: str | None  # of the trace that the request belongs to
    method: str  # how the person had signed in
    sequence: int | None = None  # its place in the chain of the account; None while repeats are counted
    previous_hash: str | None = None
    hash: str | None = None
    erased_by: str | None = None  # the entry that says that its content was erased

    @classmethod
    def from_row(cls, row: Row) -> "Entry":
        return item_from_row(cls, row, actor=Actor(row["actor_type"], row["actor_id"], row["actor_name"]))


class AuditEntry(Struct, rename="camel", frozen=True):
    """`count` is above 1 for what was refused again within the same minute.

    `requestedAt` is the time of the click, for what the dashboard did after its time to undo; else null.
    `traceId` is that of the request's `traceparent`, or of the message decided on.
    `hash` is the SHA-256 of the entry without it, as JSON with sorted keys and no spaces; `previousHash`
    is the one of the entry before it in the account's chain. Both are null while repeats are counted.
    """

    id: str
    at: Timestamp
    actor: Actor
    address: str
    action: str
    target: str
    before: AnyJson
    after: AnyJson
    count: int
    pod_id: str | None
    inbox_id: str | None
    user_agent: str
    requested_at: Timestamp | None
    trace_id: str | None
    method: Annotated[str, Meta(description=SIGNED_IN)]
    sequence: Annotated[int | None, Meta(description="Its number in the chain of the account, from 1.")]
    previous_hash: str | None
    hash: str | None
    erased_by: Annotated[str, Meta(description=ERASED_BY)] | UnsetType = UNSET

    @classmethod
    def of(cls, entry: Entry) -> "AuditEntry":
        before, after = (None if said is None else Raw(said.encode()) for said in (entry.before, entry.after))
        asked = None if entry.asked_at is None else to_iso(entry.asked_at)
        return show_item(
            cls,
            entry,
            at=to_iso(entry.created_at),
            before=before,
            after=after,
            requested_at=asked,
            erased_by=entry.erased_by or UNSET,
        )


def hash_of(entry: Entry) -> str:
    """Return the hash of an entry with its place in the chain: anyone can compute it from what is shown."""
    return _hash_without(entry, "hash")


def hash_of_rest(entry: Entry) -> str:
    """Return the hash of what an erasure left of an entry, without the entry's own hash."""
    return _hash_without(entry, "hash", "erasedBy")


def _hash_without(entry: Entry, *names: str) -> str:
    shown = msgspec.json.decode(msgspec.json.encode(AuditEntry.of(entry)))
    return digest(canonical({name: value for name, value in shown.items() if name not in names}))
