"""Events: the log of what happened. A payload is built here once and kept as the very bytes to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from postroom import attachments, ids
from postroom.attachments import Attachment
from postroom.clock import to_iso
from postroom.errors import NotFound
from postroom.messages import INBOUND, Document, Verdicts
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


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    account_id: str
    position: int
    inbox_id: str
    kind: str
    payload: bytes
    message_id: str

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
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a sent mail for one recipient."""

    recipient: str
    reason: str


def record(
    tx: Tx,
    account_id: str,
    kind: str,
    document: Document,
    files: Sequence[Attachment],
    base_url: str,
    now: int,
    fate: Fate | None = None,
) -> Event:
    event_id = ids.new(ids.EVENT, now)
    payload = Payload(
        event=kind,
        event_id=event_id,
        inbox_id=document.inbox_id,
        thread_id=document.thread_id,
        message=_to_message(document, files, base_url),
        occurred_at=to_iso(now),
        recipient=UNSET if fate is None else fate.recipient,
        reason=UNSET if fate is None else fate.reason,
    )
    event = Event(
        id=event_id,
        account_id=account_id,
        position=_next_position(tx, account_id),
        inbox_id=document.inbox_id,
        kind=kind,
        payload=msgspec.json.encode(payload),
        message_id=document.id,
    )
    tx.run(
        "insert into events (id, account_id, position, inbox_id, kind, payload, message_id, created_at)"
        " values (:id, :account_id, :position, :inbox_id, :kind, :payload, :message_id, :now)",
        id=event.id,
        account_id=account_id,
        position=event.position,
        inbox_id=event.inbox_id,
        kind=kind,
        payload=event.payload,
        message_id=event.message_id,
        now=now,
    )
    return event


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


def _next_position(tx: Tx, account_id: str) -> int:
    """The row stays locked until commit, so that positions become visible in their order."""
    row = tx.one(
        "update accounts set event_position = event_position + 1 where id = :id returning event_position",
        id=account_id,
    )
    assert row is not None
    return int(row["event_position"])


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
