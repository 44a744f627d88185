"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.responses import Response

from postroom.accounts import domains, keys
from postroom.clock import to_iso
from postroom.config import Plan
from postroom.mailbox import attachments, inboxes, threads
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.message_json import ShownAttachment
from postroom.outward.orders import SendReceipt
from postroom.queue import deliveries, suppressions

SCHEMAS = "#/components/schemas"
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
    webhook_secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, inbox: inboxes.Inbox, webhook_secret: str | UnsetType = UNSET) -> "Inbox":
        return cls(
            id=inbox.id,
            address=inbox.address,
            display_name=inbox.display_name,
            created_at=to_iso(inbox.created_at),
            webhook_url=inbox.webhook_url,
            webhook_secret=webhook_secret,
        )


class InboxPage(Struct, rename="camel", frozen=True):
    data: list[Inbox]
    total: int


class ApiKey(Struct, rename="camel", frozen=True):
    id: str
    name: str
    inbox_id: str | None
    token_prefix: str
    last4: str
    created_at: Timestamp
    last_used_at: Timestamp | None

    @classmethod
    def of(cls, key: keys.Key) -> "ApiKey":
        used_at = None if key.last_used_at is None else to_iso(key.last_used_at)
        return cls(
            key.id, key.name, key.inbox_id, key.token_prefix, key.last4, to_iso(key.created_at), used_at
        )


class ApiKeyPage(Struct, rename="camel", frozen=True):
    data: list[ApiKey]
    total: int


class CreatedApiKey(Struct, rename="camel", frozen=True):
    """The only answer that shows the token."""

    id: str
    name: str
    inbox_id: str | None
    token: str
    token_prefix: str
    last4: str
    created_at: Timestamp
    last_used_at: Timestamp | None

    @classmethod
    def of(cls, key: keys.Key, token: str) -> "CreatedApiKey":
        shown = ApiKey.of(key)
        return cls(
            id=shown.id,
            name=shown.name,
            inbox_id=shown.inbox_id,
            token=token,
            token_prefix=shown.token_prefix,
            last4=shown.last4,
            created_at=shown.created_at,
            last_used_at=None,
        )


class Me(Struct, rename="camel", frozen=True):
    account_id: str
    account_name: str
    plan: Plan
    key_id: str
    scope: Literal["account", "pod", "inbox"]
    inbox_id: str | None

    @classmethod
    def of(cls, caller: keys.Caller) -> "Me":
        return cls(
            account_id=caller.account_id,
            account_name=caller.account_name,
            plan=caller.plan,
            key_id=caller.key_id,
            scope="inbox" if caller.inbox_id else "pod" if caller.pod_id else "account",
            inbox_id=caller.inbox_id,
        )


class Thread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str
    last_message_at: Timestamp
    is_read: bool
    message_count: int

    @classmethod
    def of(cls, thread: threads.Thread) -> "Thread":
        return cls(
            id=thread.id,
            inbox_id=thread.inbox_id,
            subject=thread.subject,
            last_message_at=to_iso(thread.last_message_at),
            is_read=thread.is_read,
            message_count=thread.message_count,
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
    ok: bool = True

    @classmethod
    def of(cls, thread: threads.Thread) -> "ChangedThread":
        shown = Thread.of(thread)
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
RawMessages = Annotated[
    list[Raw], Meta(extra_json_schema={"items": {"$ref": "#/components/schemas/Message"}})
]


Truncated = Annotated[bool, Meta(description="Only when a page is cut short: the next begins behind it.")]


class MessagePage(Struct, rename="camel", frozen=True):
    data: RawMessages
    total: int
    truncated: Truncated | UnsetType = UNSET


class ThreadMessages(Struct, rename="camel", frozen=True):
    thread_id: str
    inbox_id: str
    subject: str
    is_read: bool
    data: RawMessages
    total: int
    truncated: Truncated | UnsetType = UNSET

    @classmethod
    def of(cls, thread: threads.Thread, documents: list[bytes], is_cut: bool) -> "ThreadMessages":
        return cls(
            thread_id=thread.id,
            inbox_id=thread.inbox_id,
            subject=thread.subject,
            is_read=thread.is_read,
            data=[Raw(document) for document in documents],
            total=thread.message_count,
            truncated=is_cut or UNSET,
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
    data: Annotated[list[Raw], Meta(extra_json_schema={"items": {"$ref": f"{SCHEMAS}/Payload"}})]
    next: str | None
    truncated: Truncated | UnsetType = UNSET


class Suppression(Struct, rename="camel", frozen=True):
    address: str
    type: str
    created_at: Timestamp

    @classmethod
    def of(cls, item: suppressions.Suppression) -> "Suppression":
        return cls(item.address, item.type, to_iso(item.created_at))


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
