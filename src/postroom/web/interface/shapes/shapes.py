"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.responses import Response

from postroom.accounts import domains
from postroom.accounts.rules import approval, limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.clock import to_iso
from postroom.events.payload import Payload
from postroom.mailbox import attachments, inboxes, threads
from postroom.mailbox.documents import Document, Piece
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.message_json import ShownAttachment
from postroom.outward.orders import SendReceipt
from postroom.queue import deliveries, suppressions

Timestamp = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-14T10:05:00.000Z"])
]


class Inbox(Struct, rename="camel", frozen=True):
    """`webhookSecret` is there once: in the answer that set the inbox's own webhook."""

    id: str
    address: str
    display_name: str | None
    created_at: Timestamp
    webhook_url: str | None
    pod_id: str
    approval: Approval | None
    limits: Budget | None
    metadata: dict[str, str | int | float | bool]
    retention_days: int | None
    webhook_secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, inbox: inboxes.Inbox, webhook_secret: str | UnsetType = UNSET) -> "Inbox":
        return cls(
            id=inbox.id,
            address=inbox.address,
            display_name=inbox.display_name,
            created_at=to_iso(inbox.created_at),
            webhook_url=inbox.webhook_url,
            pod_id=inbox.pod_id,
            approval=approval.decode(inbox.approval),
            limits=None if inbox.limits is None else limits.decode(inbox.limits),
            metadata=inboxes.decode_metadata(inbox.metadata),
            retention_days=inbox.retention_days,
            webhook_secret=webhook_secret,
        )


class InboxPage(Struct, rename="camel", frozen=True):
    data: list[Inbox]
    total: int


class Thread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str
    last_message_at: Timestamp
    is_read: bool
    message_count: int
    created_at: Timestamp
    labels: list[str]
    related_thread_ids: list[str]

    @classmethod
    def of(cls, thread: threads.Thread, labels: Sequence[str], related: Sequence[str]) -> "Thread":
        return cls(
            id=thread.id,
            inbox_id=thread.inbox_id,
            subject=thread.subject,
            last_message_at=to_iso(thread.last_message_at),
            is_read=thread.is_read,
            message_count=thread.message_count,
            created_at=to_iso(thread.created_at),
            labels=list(labels),
            related_thread_ids=list(related),
        )


class ThreadPage(Struct, rename="camel", frozen=True):
    data: list[Thread]
    total: int


class ChangedThread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str
    last_message_at: Timestamp
    is_read: bool
    message_count: int
    created_at: Timestamp
    labels: list[str]
    related_thread_ids: list[str]
    ok: bool = True

    @classmethod
    def of(cls, thread: threads.Thread, labels: Sequence[str], related: Sequence[str]) -> "ChangedThread":
        shown = Thread.of(thread, labels, related)
        return cls(*(getattr(shown, name) for name in shown.__struct_fields__))


class ShownRecipient(Struct, rename="camel", frozen=True):
    """One recipient of a sent mail, and how far its delivery has come."""

    address: str
    state: Annotated[
        str, Meta(description="pending, held, delivered, captured, failed, cancelled or bounced")
    ]
    attempts: int
    last_code: int | None
    last_reply: str
    next_attempt_at: Timestamp | None

    @classmethod
    def of(cls, delivery: deliveries.Delivery) -> "ShownRecipient":
        is_pending = delivery.state == deliveries.PENDING
        return cls(
            address=delivery.target,
            state=delivery.state,
            attempts=delivery.attempts,
            last_code=delivery.last_code,
            last_reply=delivery.last_reply,
            next_attempt_at=to_iso(delivery.due_at) if is_pending else None,
        )


# A message's JSON is stored; this type only describes it, and is made from the stored one's fields.
Message = msgspec.defstruct(
    "Message",
    [
        *((item.name, item.type, item.default) for item in msgspec.structs.fields(Document)),
        ("status", Literal["pending", "sent", "received", "failed"]),
        ("blocked", bool),
        ("attachments_read", bool),
        ("attachments", list[ShownAttachment]),
        ("recipients", list[ShownRecipient] | UnsetType, UNSET),
        ("hold", ShownHold | UnsetType, UNSET),
        ("captured", bool | UnsetType, UNSET),
    ],
    rename="camel",
    kw_only=True,
)
RawMessage = Annotated[Raw, Message]
RawMessageOrNothing = Annotated[Response, Message]
RawReceipt = Annotated[Response, SendReceipt]
RawMessages = list[RawMessage]


Truncated = Annotated[bool, Meta(description="Only when a page is cut short: the next begins behind it.")]


class MessagePage(Struct, rename="camel", frozen=True):
    data: RawMessages
    total: int
    truncated: Truncated | UnsetType = UNSET


def message_page(found: list[Piece], total: int, is_cut: bool) -> Response:
    """A page of messages, put together once: it is the answer that is asked for most, and the largest."""
    ending = b'],"total":%d%s}' % (total, b',"truncated":true' if is_cut else b"")
    return Response(b"".join((b'{"data":[', *found, ending)), media_type="application/json")


RawMessagePage = Annotated[Response, MessagePage]


class ThreadMessages(Struct, rename="camel", frozen=True):
    thread_id: str
    inbox_id: str
    subject: str
    is_read: bool
    data: Annotated[Raw, RawMessages]
    total: int
    related_thread_ids: list[str]
    truncated: Truncated | UnsetType = UNSET

    @classmethod
    def of(
        cls, thread: threads.Thread, found: list[Piece], related: Sequence[str], is_cut: bool
    ) -> "ThreadMessages":
        return cls(
            thread_id=thread.id,
            inbox_id=thread.inbox_id,
            subject=thread.subject,
            is_read=thread.is_read,
            data=Raw(b"".join((b"[", *found, b"]"))),
            total=thread.message_count,
            truncated=is_cut or UNSET,
            related_thread_ids=list(related),
        )


class AttachmentText(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    extraction_method: str
    text: str

    @classmethod
    def of(cls, file: attachments.Attachment) -> "AttachmentText":
        text = attachments.require_text(file)
        return cls(file.filename, file.content_type, file.extraction_method or "", text)


class EventPage(Struct, rename="camel", frozen=True):
    data: list[Annotated[Raw, Payload]]
    next: str | None
    truncated: Truncated | UnsetType = UNSET


class Suppression(Struct, rename="camel", frozen=True):
    """`messageId` is the sent mail that caused it, `reason` what its recipient's server or reader said."""

    address: str
    type: str
    created_at: Timestamp
    message_id: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, item: suppressions.Suppression) -> "Suppression":
        return cls(item.address, item.type, to_iso(item.created_at), item.message_id, item.reason)


class SuppressionPage(Struct, rename="camel", frozen=True):
    data: list[Suppression]
    total: int


class ShownRecord(Struct, rename="camel", frozen=True):
    type: str
    name: str
    value: str
    purpose: str
    required: bool
    found: bool | None


class Domain(Struct, rename="camel", frozen=True):
    id: str
    domain: str
    pod_id: str
    status: Literal["pending", "verified"]
    created_at: Timestamp
    verified_at: Timestamp | None
    records: list[ShownRecord]

    @classmethod
    def of(
        cls, domain: domains.Domain, records: list[domains.DnsRecord], found: Sequence[bool] | None = None
    ) -> "Domain":
        there: Sequence[bool | None] = found or [None] * len(records)
        return cls(
            id=domain.id,
            domain=domain.name,
            pod_id=domain.pod_id,
            status="pending" if domain.verified_at is None else "verified",
            created_at=to_iso(domain.created_at),
            verified_at=None if domain.verified_at is None else to_iso(domain.verified_at),
            records=[
                ShownRecord(
                    record.type, record.name, record.value, record.purpose, record.is_required, is_there
                )
                for record, is_there in zip(records, there, strict=True)
            ],
        )


class DomainPage(Struct, rename="camel", frozen=True):
    data: list[Domain]
    total: int
