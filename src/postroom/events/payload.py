"""The JSON of an event, the same on the stream, in webhooks and in the log: built here, as bytes, once."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from postroom.accounts.actors import Actor
from postroom.clock import to_iso
from postroom.mailbox import attachments, holds
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document, Verdicts
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import INBOUND


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
    metadata: dict[str, str] | UnsetType = UNSET


class EventHold(Struct, frozen=True):
    """Why a send waits or waited."""

    state: str
    reasons: list[str]
    content_hash: str
    expires_at: str | None


class Payload(Struct, frozen=True):
    event: str
    event_id: str
    inbox_id: str
    thread_id: str
    message: EventMessage
    occurred_at: str
    recipient: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    hold: EventHold | UnsetType = UNSET
    actor: Actor | UnsetType = UNSET
    note: str | UnsetType | None = UNSET


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a sent mail for one recipient."""

    recipient: str
    reason: str


class News(Struct, frozen=True):
    """What an event will tell."""

    account_id: str
    pod_id: str
    kind: str
    document: Document
    files: Sequence[Attachment]
    occurred_at: int
    fate: Fate | None = None
    hold: Hold | None = None
    actor: Actor | None = None


def encode(news: News, event_id: str, base_url: str) -> bytes:
    document = news.document
    return msgspec.json.encode(
        Payload(
            event=news.kind,
            event_id=event_id,
            inbox_id=document.inbox_id,
            thread_id=document.thread_id,
            message=_to_message(document, news.files, base_url),
            occurred_at=to_iso(news.occurred_at),
            recipient=UNSET if news.fate is None else news.fate.recipient,
            reason=UNSET if news.fate is None else news.fate.reason,
            hold=UNSET if news.hold is None else _to_hold(news.hold),
            actor=news.actor or UNSET,
            note=UNSET if news.hold is None else news.hold.note,
        )
    )


def _to_hold(hold: Hold) -> EventHold:
    shown = holds.show(hold)
    return EventHold(shown.state, shown.reasons, shown.content_hash, shown.expires_at)


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
        metadata=document.metadata,
    )


def _describe(message_id: str, file: Attachment, base_url: str) -> EventAttachment:
    return EventAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=base_url + attachments.path(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else file.parsed_text,
        extraction_method=file.extraction_method or "unsupported",
    )
