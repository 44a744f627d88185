"""Events: the log of what happened. A row holds a stub, its message the texts: together the bytes to send."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct, structs

from postroom import ids, limits
from postroom.accounts.scope import Scope, default_pod
from postroom.errors import NotFound
from postroom.events import payload
from postroom.events.payload import NewEvent, News, SystemNotice
from postroom.mailbox import attachments, documents
from postroom.mailbox.attachments import Attachment
from postroom.storage import packing, pages
from postroom.storage.database import Row, Tx, one_of

PACKED_STUB_BYTES = 4 * 1024


class _EventFields(Struct, frozen=True):
    id: str
    account_id: str
    position: int
    inbox_id: str
    kind: str
    payload: bytes
    message_id: str
    created_at: int
    pod_id: str


class Event(_EventFields, frozen=True):
    thread_id: str = ""


class EventRow(_EventFields, frozen=True):
    """An event to be stored. `payload` is its stub, without the texts of the message."""

    text_files: str


def record_all(tx: Tx, announced: Sequence[News], base_url: str) -> list[EventRow]:
    """Record the events. Their positions in the log follow the given order."""
    positions = _take_positions(tx, Counter(news.account_id for news in announced))
    recorded = [_to_row(news, next(positions[news.account_id]), base_url) for news in announced]
    _insert(tx, recorded)
    return recorded


def _insert(tx: Tx, recorded: Sequence[EventRow]) -> None:
    tx.many(
        "insert into events (id, account_id, position, inbox_id, kind, payload, message_id, created_at,"
        " pod_id, text_files) values :rows",
        [structs.astuple(structs.replace(event, payload=_packed(event.payload))) for event in recorded],
    )


def _packed(stub: bytes) -> bytes:
    """Pack a short stub. A long one stays unpacked: the database must know how much of a page it takes."""
    return stub if len(stub) > PACKED_STUB_BYTES else packing.pack(stub) or stub


def _to_row(news: News, position: int, base_url: str) -> EventRow:
    if isinstance(news, NewEvent):
        return _to_new_event(news, position, base_url)
    return _to_notice(news, position)


def _to_notice(notice: SystemNotice, position: int) -> EventRow:
    """Return the row of an event that is about no message."""
    event_id = ids.new(ids.EVENT, notice.occurred_at)
    return EventRow(
        id=event_id,
        account_id=notice.account_id,
        position=position,
        inbox_id=notice.inbox_id,
        kind=notice.kind,
        payload=payload.of_notice(notice, event_id),
        message_id="",
        created_at=notice.occurred_at,
        pod_id=notice.pod_id,
        text_files="",
    )


def _to_new_event(news: NewEvent, position: int, base_url: str) -> EventRow:
    document, event_id = news.document, ids.new(ids.EVENT, news.occurred_at)
    return EventRow(
        id=event_id,
        account_id=news.account_id,
        position=position,
        inbox_id=document.inbox_id,
        kind=news.kind,
        payload=payload.to_stub(news, event_id, base_url),
        message_id=document.id,
        created_at=news.occurred_at,
        pod_id=news.pod_id,
        text_files=_join(payload.files_with_text(news.files)),
    )


def _take_positions(tx: Tx, counts: Counter[str]) -> dict[str, Iterator[int]]:
    """Take positions. The rows stay locked until commit, so positions become visible in their order."""
    positions: dict[str, Iterator[int]] = {}
    for account_id, count in sorted(counts.items()):
        row = tx.one(
            "update accounts set event_position = event_position + :count where id = :id"
            " returning event_position",
            count=count,
            id=account_id,
        )
        assert row is not None
        last = int(row["event_position"])
        positions[account_id] = iter(range(last - count + 1, last + 1))
    return positions


def bell(account_id: str) -> str:
    """Rings when an account has a new event."""
    return f"events:{account_id}"


class EventChoice(Struct, frozen=True):
    """Which events are wanted within a scope; an empty set wants all."""

    scope: Scope
    inbox_ids: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    @property
    def is_for_all(self) -> bool:
        """Return whether it wants all events of an account."""
        return self.scope.is_account and not self.inbox_ids and not self.kinds


def position_of(tx: Tx, scope: Scope, event_id: str) -> int:
    """Takes any event of the account, also of other inboxes: an id is enough to continue behind it."""
    row = ids.is_id(ids.EVENT, event_id) and tx.one(
        "select position from events where id = :id and account_id = :account_id",
        id=event_id,
        account_id=scope.account_id,
    )
    if not row:
        raise NotFound(f"No such event. It may be older than {limits.EVENTS_DAYS} days.")
    return int(row["position"])


def position_of_message(tx: Tx, account_id: str, inbox_id: str, message_id: str) -> int:
    rows = ids.is_id(ids.MESSAGE, message_id) and tx.all(
        "select account_id, inbox_id, position from events where message_id = :id", id=message_id
    )
    owner = (account_id, inbox_id)
    positions = [row["position"] for row in rows or () if (row["account_id"], row["inbox_id"]) == owner]
    if not positions:
        raise NotFound(f"No such message, or its event is older than {limits.EVENTS_DAYS} days.")
    return int(min(positions))


_COLUMNS = (
    "events.id, events.account_id, position, events.inbox_id, kind, payload, events.message_id,"
    f" events.created_at, events.pod_id, text_files, messages.thread_id, {documents.COLUMNS}"
)
_TABLES = "events left join messages on messages.id = events.message_id"
ID_ALONE = "events.id, position"
BEHIND_ALL = 2**62
# An event contains the text and the reply text, which the document usually stores once.
_SIZES = f"position, length(payload) + 2 * coalesce({documents.SIZE}, 0) as {pages.SIZE}"


class LogOrder(NamedTuple):
    side: str
    by: str


OLDEST_FIRST = LogOrder("position > :position", "position")
NEWEST_FIRST = LogOrder("position < :position", "position desc")


def find(tx: Tx, event_id: str) -> Event | None:
    found = _with_texts(tx, tx.all(f"select {_COLUMNS} from {_TABLES} where events.id = :id", id=event_id))
    return found[0] if found else None


def kinds_of(tx: Tx, event_ids: Sequence[str]) -> dict[str, str]:
    """Return kinds by event id, for events that still exist."""
    if not event_ids:
        return {}
    is_wanted, wanted = one_of("id", event_ids)
    rows = tx.all(f"select id, kind from events where {is_wanted}", **wanted)
    return {row["id"]: row["kind"] for row in rows}


def last_position(tx: Tx, account_id: str) -> int:
    row = tx.one("select event_position from accounts where id = :id", id=account_id)
    return 0 if row is None else int(row["event_position"])


def last_id(tx: Tx, scope: Scope, below: int = BEHIND_ALL) -> str | None:
    """Return the id of the newest event in scope, or of the newest before a position."""
    rows = _read(tx, scope, NEWEST_FIRST, _choose(tx, EventChoice(scope), NEWEST_FIRST, below, 1), ID_ALONE)
    return str(rows[0]["id"]) if rows else None


class EventSlice(Struct, frozen=True):
    """Part of the log. If `has_more`, nothing after its last event was read."""

    events: list[Event]
    has_more: bool
    is_cut: bool = False  # what was asked for did not fit into a page

    @property
    def last_position(self) -> int:
        return self.events[-1].position


def list_after(tx: Tx, wanted: EventChoice, position: int, limit: int) -> EventSlice:
    """List events, oldest first."""
    return _list(tx, wanted, OLDEST_FIRST, position, limit)


def list_before(tx: Tx, wanted: EventChoice, position: int | None, limit: int) -> EventSlice:
    """List events, newest first, from the newest there is or from before a position."""
    end = last_position(tx, wanted.scope.account_id) + 1 if position is None else position
    return _list(tx, wanted, NEWEST_FIRST, end, limit)


def _list(tx: Tx, wanted: EventChoice, order: LogOrder, position: int, limit: int) -> EventSlice:
    """Reads the sizes first, so that events that do not fit into the page are never read."""
    positions = _choose(tx, wanted, order, position, limit)
    sized = _read(tx, wanted.scope, order, positions, _SIZES)
    fitting = [row["position"] for row in sized[: pages.fitting([row[pages.SIZE] for row in sized])]]
    found = _with_texts(tx, _read(tx, wanted.scope, order, fitting, _COLUMNS))
    is_cut = len(found) < len(sized)
    return EventSlice(found, has_more=is_cut or len(sized) == limit, is_cut=is_cut)


def _read(tx: Tx, scope: Scope, order: LogOrder, positions: Sequence[int], columns: str) -> list[Row]:
    if not positions:
        return []
    is_wanted, params = one_of("position", positions)
    rows = tx.all(
        f"select {columns} from {_TABLES} where events.account_id = :account_id and {is_wanted}",
        account_id=scope.account_id,
        **params,
    )
    return sorted(rows, key=lambda row: int(row["position"]), reverse=order is NEWEST_FIRST)


def _choose(tx: Tx, wanted: EventChoice, order: LogOrder, position: int, limit: int) -> list[int]:
    """Return positions by one index lookup for each owner and kind: a filter would scan the whole log."""
    if wanted.is_for_all:
        return _positions_of(tx, {"account_id": wanted.scope.account_id}, order, position, limit)
    found: list[int] = []
    for place in _places(tx, wanted):
        for kind in sorted(wanted.kinds) or _kinds_at(tx, place):
            found += _positions_of(tx, {**place, "kind": kind}, order, position, limit)
    return sorted(found, reverse=order is NEWEST_FIRST)[:limit]


def _kinds_at(tx: Tx, place: dict[str, str]) -> Iterator[str]:
    """Yield all kinds there, each by one index lookup, also those that this version does not know."""
    where = " and ".join(f"{column} = :{column}" for column in place)
    kind = ""
    while row := tx.one(
        f"select kind from events where {where} and kind > :kind order by kind limit 1", kind=kind, **place
    ):
        kind = row["kind"]
        yield kind


def _places(tx: Tx, wanted: EventChoice) -> list[dict[str, str]]:
    """Return columns and values to look for: the wanted inboxes in scope, or a pod, or the account."""
    scope = wanted.scope
    if scope.inbox_id is not None and not wanted.inbox_ids:
        return [{"inbox_id": scope.inbox_id}]
    if wanted.inbox_ids:
        return [{"inbox_id": each} for each in sorted(wanted.inbox_ids) if _is_within(tx, each, scope)]
    pods = pods_of(scope)
    return [{"account_id": scope.account_id, "pod_id": pod} for pod in pods] or [
        {"account_id": scope.account_id}
    ]


def _is_within(tx: Tx, inbox_id: str, scope: Scope) -> bool:
    """Return whether the inbox is in scope. All its events name its owner, even after it was deleted."""
    row = ids.is_id(ids.INBOX, inbox_id) and tx.one(
        "select account_id, pod_id from events where inbox_id = :id order by kind, position limit 1",
        id=inbox_id,
    )
    if not row:
        return False
    return scope.covers(row["account_id"], row["pod_id"] or default_pod(row["account_id"]), inbox_id)


def _positions_of(tx: Tx, place: dict[str, str], order: LogOrder, position: int, limit: int) -> list[int]:
    where = " and ".join(f"{column} = :{column}" for column in place)
    rows = tx.all(
        f"select position from events where {where} and {order.side} order by {order.by} limit :limit",
        position=position,
        limit=limit,
        **place,
    )
    return [row["position"] for row in rows]


def list_of_message(tx: Tx, message_id: str, limit: int) -> list[Event]:
    """List events, oldest first. The caller has checked that the message is in scope."""
    rows = tx.all(
        f"select {_COLUMNS} from {_TABLES} where events.message_id = :id order by position limit :limit",
        id=message_id,
        limit=limit,
    )
    return _with_texts(tx, rows)


def pods_of(scope: Scope) -> list[str]:
    """Return the pod ids as stored in the rows; none for an account, whose pods are all included."""
    if scope.pod_id is None:
        return []
    return [scope.pod_id, ""] if scope.pod_id == default_pod(scope.account_id) else [scope.pod_id]


def _with_texts(tx: Tx, rows: Sequence[Row]) -> list[Event]:
    files = attachments.list_of_messages(tx, sorted({row["message_id"] for row in rows if row["text_files"]}))
    return [
        Event(
            row["id"],
            row["account_id"],
            row["position"],
            row["inbox_id"],
            row["kind"],
            _payload(row, files.get(row["message_id"], ())),
            row["message_id"],
            row["created_at"],
            row["pod_id"] or default_pod(row["account_id"]),
            row["thread_id"] or _thread_of_notice(row),
        )
        for row in rows
    ]


class _Notice(Struct, frozen=True):
    thread_id: str


def _thread_of_notice(row: Row) -> str:
    """Return the thread that an event without a message is about, if any."""
    if row["message_id"] or not row["kind"].startswith("thread."):
        return ""
    return msgspec.json.decode(packing.unpack_json(bytes(row["payload"])), type=_Notice).thread_id


def _payload(row: Row, files: Sequence[Attachment]) -> bytes:
    stored = packing.unpack_json(bytes(row["payload"]))
    if not row["message_id"]:
        return stored
    if row["document"] is None:
        return payload.without_message(stored)
    return payload.complete(stored, documents.texts(row), _texts_of(files, row["text_files"]))


def _texts_of(files: Sequence[Attachment], numbers: str) -> list[bytes]:
    return [msgspec.json.encode(files[int(number)].parsed_text)[1:-1] for number in numbers.split()]


def _join(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


class MessageOfEvent(Struct, frozen=True):
    message_id: str
    created_at: int


def list_messages_of_events(tx: Tx, kind: str, since: int, limit: int) -> list[MessageOfEvent]:
    """List the messages with an event of this kind, from all accounts, newest first."""
    rows = tx.all(
        "select message_id, created_at from events where created_at >= :since and kind = :kind"
        " order by created_at desc limit :limit",
        since=since,
        kind=kind,
        limit=limit,
    )
    return [MessageOfEvent(row["message_id"], row["created_at"]) for row in rows]
