"""Events: the log of what happened. A payload is built here once and kept as the very bytes to be sent."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from postroom import ids
from postroom.clock import to_iso
from postroom.errors import NotFound
from postroom.mailbox import attachments
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.messages import INBOUND, Document, Verdicts
from postroom.storage.database import Row, Tx

MESSAGE_RECEIVED = "message.received"
MESSAGE_SENT = "message.sent"
MESSAGE_FAILED = "message.failed"
MESSAGE_BOUNCED = "message.bounced"
MESSAGE_COMPLAINED = "message.complained"


class EventAttachment(Struct, rename="camel", frozen=True, kw_only=True):
    filename: str
    content_type: str
    size_bytes: int
    url: str
    parsed_text: str | UnsetType = UNSET
    extraction_method: str


class EventMessage(Struct, frozen=True):
    id: str
    sender: str = field(name="from")
    to: str
    subject: str
    body_text: str
    attachments: list[EventAttachment]
    received_at: str
    cc: list[str]
    rfc_message_id: str
    reply_text: str
    automated: bool
    auth: Verdicts | None


class Payload(Struct, frozen=True):
    event: str
    event_id: str
    inbox_id: str
    thread_id: str
    message: EventMessage
    occurred_at: str
    recipient: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Event(Struct, frozen=True):
    id: str
    account_id: str
    position: int
    inbox_id: str
    kind: str
    payload: bytes
    message_id: str
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "Event":
        return cls(
            row["id"],
            row["account_id"],
            row["position"],
            row["inbox_id"],
            row["kind"],
            bytes(row["payload"]),
            row["message_id"],
            row["created_at"],
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a sent mail for one recipient."""

    recipient: str
    reason: str


class News(Struct, frozen=True):
    """What an event will tell."""

    account_id: str
    kind: str
    document: Document
    files: Sequence[Attachment]
    occurred_at: int
    fate: Fate | None = None


def record_all(tx: Tx, told: Sequence[News], base_url: str) -> list[Event]:
    """In their order."""
    positions = _take_positions(tx, Counter(news.account_id for news in told))
    recorded = [_to_event(news, next(positions[news.account_id]), base_url) for news in told]
    tx.many(
        "insert into events (id, account_id, position, inbox_id, kind, payload, message_id, created_at)"
        " values :rows",
        [
            (
                event.id,
                event.account_id,
                event.position,
                event.inbox_id,
                event.kind,
                event.payload,
                event.message_id,
                event.created_at,
            )
            for event in recorded
        ],
    )
    return recorded


def _to_event(news: News, position: int, base_url: str) -> Event:
    document, event_id = news.document, ids.new(ids.EVENT, news.occurred_at)
    payload = Payload(
        event=news.kind,
        event_id=event_id,
        inbox_id=document.inbox_id,
        thread_id=document.thread_id,
        message=_to_message(document, news.files, base_url),
        occurred_at=to_iso(news.occurred_at),
        recipient=UNSET if news.fate is None else news.fate.recipient,
        reason=UNSET if news.fate is None else news.fate.reason,
    )
    return Event(
        id=event_id,
        account_id=news.account_id,
        position=position,
        inbox_id=document.inbox_id,
        kind=news.kind,
        payload=msgspec.json.encode(payload),
        message_id=document.id,
        created_at=news.occurred_at,
    )


def _to_message(document: Document, files: Sequence[Attachment], base_url: str) -> EventMessage:
    """`to` is the inbox for mail that came in, and whom it was addressed to for mail that went out."""
    return EventMessage(
        id=document.id,
        sender=document.from_addr,
        to=document.to_addr if document.direction == INBOUND else document.header_to,
        subject=document.subject,
        body_text=document.body_text,
        attachments=[_describe(document.id, file, base_url) for file in files],
        received_at=document.created_at,
        cc=document.cc,
        rfc_message_id=document.rfc_message_id,
        reply_text=document.reply_text,
        automated=document.automated,
        auth=document.auth,
    )


def _take_positions(tx: Tx, counts: Counter[str]) -> dict[str, Iterator[int]]:
    """The rows stay locked until commit, so that positions become visible in their order."""
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


def _describe(message_id: str, file: Attachment, base_url: str) -> EventAttachment:
    return EventAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=base_url + attachments.path(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else file.parsed_text,
        extraction_method=file.extraction_method or "unsupported",
    )


def bell(account_id: str) -> str:
    """Rings when an account has a new event."""
    return f"events:{account_id}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events of an account somebody wants; an empty set wants all."""

    account_id: str
    inbox_ids: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


def position_of(tx: Tx, account_id: str, scope: str | None, event_id: str) -> int:
    row = ids.is_id(ids.EVENT, event_id) and tx.one(
        "select position, inbox_id from events where id = :id and account_id = :account_id",
        id=event_id,
        account_id=account_id,
    )
    if not row or scope not in (None, row["inbox_id"]):
        raise NotFound("No such event. It may be older than 30 days.")
    return int(row["position"])


def position_of_message(tx: Tx, account_id: str, inbox_id: str, message_id: str) -> int:
    row = tx.one(
        "select min(position) as position from events where message_id = :message_id"
        " and account_id = :account_id and inbox_id = :inbox_id",
        message_id=message_id,
        account_id=account_id,
        inbox_id=inbox_id,
    )
    if row is None or row["position"] is None:
        raise NotFound("No such message, or its event is older than 30 days.")
    return int(row["position"])


def find(tx: Tx, event_id: str) -> Event | None:
    row = tx.one("select * from events where id = :id", id=event_id)
    return None if row is None else Event.from_row(row)


def last_position(tx: Tx, account_id: str) -> int:
    row = tx.one("select event_position from accounts where id = :id", id=account_id)
    return 0 if row is None else int(row["event_position"])


def list_after(tx: Tx, wanted: Filter, position: int, limit: int) -> list[Event]:
    """Oldest first."""
    inbox_clause, inbox_params = _one_of("inbox_id", wanted.inbox_ids)
    kind_clause, kind_params = _one_of("kind", wanted.kinds)
    rows = tx.all(
        "select * from events where account_id = :account_id and position > :position"
        f"{inbox_clause}{kind_clause} order by position limit :limit",
        account_id=wanted.account_id,
        position=position,
        limit=limit,
        **inbox_params,
        **kind_params,
    )
    return [Event.from_row(row) for row in rows]


def _one_of(column: str, values: frozenset[str]) -> tuple[str, dict[str, str]]:
    if not values:
        return "", {}
    params = {f"{column}_{number}": value for number, value in enumerate(sorted(values))}
    return f" and {column} in ({', '.join(f':{name}' for name in params)})", params
