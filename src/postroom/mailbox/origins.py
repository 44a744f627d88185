"""Values of messages, as hashes with a key of their inbox: which messages have one, and whose they are."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts import secret_values
from postroom.accounts.secret_values import ORIGINS
from postroom.storage.database import Row, Tx, all_of

MOST_SOURCES = 64  # the oldest messages with a value that are looked at, and as many of the newest
PLACE_BYTES = 3  # of a fingerprint, which say where the values of an inbox are
MOST_LOOKED_AT = 1000  # of a value that many messages have, for those that name a recipient
OF_THE_THREAD = 50  # the newest messages of the answered thread
_COLUMNS = (
    "messages.id, messages.thread_id, messages.direction, messages.from_address, messages.is_imported,"
    " messages.direction = 'outbound' and exists (select 1 from holds where holds.message_id = messages.id"
    " and holds.state in ('held', 'rejected', 'expired', 'cancelled')) as is_stopped"
)


class ValueOrigin(Struct, rename="camel", frozen=True):
    """A value that came from somewhere else than the people it goes to, and the message that it came with."""

    value: str
    kind: str
    message_id: str


CarriedOrigins = Annotated[
    list[ValueOrigin],
    Meta(description="The values that it carries and that came from others than its recipients."),
]


class ValueSource(Struct, frozen=True):
    """A message that holds a value."""

    message_id: str
    thread_id: str
    direction: str
    from_address: str
    is_imported: bool
    is_stopped: bool  # it was to be sent, and waits for a person or was not let out


class HeldValues(Struct, frozen=True):
    """A message with the keys of its values."""

    inbox_id: str
    message_id: str
    keys: Sequence[str]


@lru_cache(maxsize=1000)
def _key_of(secret: bytes, inbox_id: str) -> bytes:
    return blake2b(inbox_id.encode(), key=secret, digest_size=PLACE_BYTES + 32).digest()


def _fingerprint(key: bytes, value: str) -> int:
    """Values of an inbox lie side by side in the table: scattered ones would write a page each."""
    digest = blake2b(value.encode(errors="replace"), key=key[PLACE_BYTES:], digest_size=8 - PLACE_BYTES)
    return int.from_bytes(key[:PLACE_BYTES] + digest.digest(), "big", signed=True)


def add_all(tx: Tx, found: Iterable[HeldValues]) -> None:
    """Record the values of stored messages; a value that is known of a message is not recorded again."""
    filled = [each for each in found if each.keys]
    if not filled:
        return
    secret = secret_values.find(tx, ORIGINS)
    if secret is None:
        secret_values.make_missing(tx, ORIGINS)
        secret = secret_values.get(tx, ORIGINS)
    rows = {
        (_fingerprint(_key_of(secret, each.inbox_id), value), each.message_id)
        for each in filled
        for value in each.keys
    }
    tx.many(
        "insert into origin_values (fingerprint, message_id) values :rows on conflict do nothing",
        sorted(rows),
    )


def find_first(tx: Tx, asked: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ValueSource]:
    """Return the first message of an inbox with each value, by inbox and value, of those that were seen."""
    wanted = sorted(set(asked))
    secret = secret_values.find(tx, ORIGINS) if wanted else None
    if secret is None:
        return {}
    prints = {_fingerprint(_key_of(secret, inbox_id), value): (inbox_id, value) for inbox_id, value in wanted}
    rows = tx.many(
        "select column1 as fingerprint, (select min(message_id) from origin_values"
        " where fingerprint = column1) as message_id from (values :rows) as asked",
        [(each,) for each in sorted(prints)],
    )
    first = {row["fingerprint"]: row["message_id"] for row in rows if row["message_id"] is not None}
    found = all_of(tx, f"select {_COLUMNS} from messages where :wanted", "id", sorted(set(first.values())))
    sources = {row["id"]: _to_source(row) for row in found}
    return {prints[each]: sources[message_id] for each, message_id in first.items() if message_id in sources}


def has_value(tx: Tx, inbox_id: str, value: str, message_id: str) -> bool:
    """Return whether a message of an inbox has a value."""
    secret = secret_values.find(tx, ORIGINS)
    found = secret and tx.one(
        "select 1 as found from origin_values where fingerprint = :fingerprint and message_id = :message_id",
        fingerprint=_fingerprint(_key_of(secret, inbox_id), value),
        message_id=message_id,
    )
    return bool(found)


def find_source(tx: Tx, message_id: str) -> ValueSource | None:
    row = tx.one(f"select {_COLUMNS} from messages where id = :id", id=message_id)
    return None if row is None else _to_source(row)


def list_sources(tx: Tx, inbox_id: str, value: str, thread_id: str | None = None) -> list[ValueSource]:
    """Return the oldest and the newest messages of an inbox with a value, and those of a thread."""
    fingerprint = _fingerprint(_key_of(secret_values.get(tx, ORIGINS), inbox_id), value)
    newest: list[Row] = []
    oldest = _list_in_order(tx, fingerprint, "asc")
    if len(oldest) == MOST_SOURCES:
        newest = _list_in_order(tx, fingerprint, "desc")
    rows = [*oldest, *newest]
    if thread_id is not None and newest:
        rows += tx.all(
            f"select {_COLUMNS} from messages where thread_id = :thread_id and exists (select 1 from"
            " origin_values where fingerprint = :fingerprint and message_id = messages.id)"
            " order by created_at desc limit :most",
            thread_id=thread_id,
            fingerprint=fingerprint,
            most=OF_THE_THREAD,
        )
    return list({row["id"]: _to_source(row) for row in rows}.values())


def list_naming(tx: Tx, inbox_id: str, value: str, other: str, most: int) -> list[ValueSource]:
    """Return the newest messages of an inbox with two values: one that was written, and an address."""
    key = _key_of(secret_values.get(tx, ORIGINS), inbox_id)
    rows = tx.all(
        f"select {_COLUMNS} from (select message_id from origin_values where fingerprint = :fingerprint"
        " order by message_id desc limit :looked_at) as held join origin_values as named"
        " on named.message_id = held.message_id and named.fingerprint = :other"
        " join messages on messages.id = held.message_id order by messages.id desc limit :most",
        fingerprint=_fingerprint(key, value),
        other=_fingerprint(key, other),
        looked_at=MOST_LOOKED_AT,
        most=most,
    )
    return [_to_source(row) for row in rows]


def _list_in_order(tx: Tx, fingerprint: int, direction: str) -> list[Row]:
    return tx.all(
        f"select {_COLUMNS} from origin_values join messages on messages.id = origin_values.message_id"
        f" where fingerprint = :fingerprint order by message_id {direction} limit :most",
        fingerprint=fingerprint,
        most=MOST_SOURCES,
    )


def _to_source(row: Row) -> ValueSource:
    return ValueSource(
        row["id"],
        row["thread_id"],
        row["direction"],
        row["from_address"],
        bool(row["is_imported"]),
        bool(row["is_stopped"]),
    )


def has_written(tx: Tx, thread_id: str, address: str) -> bool:
    """Return whether an email of a thread is from this address."""
    found = tx.one(
        "select 1 as found from messages where thread_id = :thread_id and from_address = :address"
        " and direction = 'inbound' and is_imported = 0 limit 1",
        thread_id=thread_id,
        address=address,
    )
    return found is not None


def has_sent(tx: Tx, inbox_id: str, rfc_message_id: str) -> bool:
    """Return whether an inbox has sent the email with this Message-ID."""
    found = tx.one(
        "select 1 as found from messages where inbox_id = :inbox_id and rfc_message_id = :rfc_message_id"
        " and direction = 'outbound' limit 1",
        inbox_id=inbox_id,
        rfc_message_id=rfc_message_id,
    )
    return found is not None


def list_before(tx: Tx, thread_id: str, message_id: str, most: int) -> list[ValueSource]:
    """Return the messages of a thread that are older than one of it, newest first."""
    rows = tx.all(
        f"select {_COLUMNS} from messages where thread_id = :thread_id and id < :id"
        " order by created_at desc, id desc limit :most",
        thread_id=thread_id,
        id=message_id,
        most=most,
    )
    return [_to_source(row) for row in rows]
