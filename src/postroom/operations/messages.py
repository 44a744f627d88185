"""Operations on messages: read, label, delete, release, retry, reschedule and cancel."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from postroom import limits
from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import SENDING, require_any
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.config import Config
from postroom.errors import BadRequest, NothingToDo
from postroom.fields import Limit, Offset, Timestamp, Truncated, show_item
from postroom.inward import admit, examine
from postroom.mailbox import (
    attachments,
    inboxes,
    labels,
    message_json,
    message_lists,
    messages,
    threads,
    trash,
)
from postroom.mailbox.documents import Document
from postroom.mailbox.follow_ups import Awaiting
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links, ShownAttachment
from postroom.outward.holding import decide
from postroom.outward.holding.decide import Decision
from postroom.outward.send_stages import parse_moment, require_ahead
from postroom.queue import deliveries
from postroom.storage.database import Tx
from postroom.upkeep import deletion
from postroom_mail.files.extraction import MAX_WHOLE_CHARS


class MessageQuery(Struct, frozen=True):
    direction: (
        Annotated[Literal["inbound", "outbound"], Meta(description="Only these; both by default.")] | None
    ) = None
    include: (
        Annotated[
            Literal["blocked", "junk", "trash"],
            Meta(description="Also what a policy stopped, what is in Junk, or what is in Trash."),
        ]
        | None
    ) = None
    limit: Limit = limits.PAGE
    offset: Offset = 0


class ShownRecipient(Struct, rename="camel", frozen=True):
    """One recipient of a sent email, and the state of its delivery."""

    address: str
    state: Annotated[
        str, Meta(description="pending, held, delivered, captured, failed, cancelled or bounced")
    ]
    attempts: int
    last_code: int | None
    last_reply: str
    next_attempt_at: Timestamp | None
    tls: Annotated[
        str | None,
        Meta(
            description="How it went to the server that took it: none, opportunistic, mta-sts or dane; null"
            " where none outside did."
        ),
    ] = None

    @classmethod
    def of(cls, delivery: deliveries.Delivery) -> "ShownRecipient":
        due_at = to_iso(delivery.due_at) if delivery.state == deliveries.PENDING else None
        return show_item(cls, delivery, address=delivery.target, next_attempt_at=due_at)


FOLDER = (
    "Where it is. Junk also has what a policy stopped; archive is received email of a thread that is done,"
    " which mail clients still show in INBOX."
)
IMPORTED = "true: put here by a mail client or an import; this server did not receive it."
AWAITING = "Whose answer to it its thread waits for."
Folder = Literal["inbox", "archive", "junk", "trash", "sent"]
# A message's JSON is stored; this type only describes it, and is made from the stored one's fields.
Message = msgspec.defstruct(
    "Message",
    [
        *((item.name, item.type, item.default) for item in msgspec.structs.fields(Document)),
        ("status", Literal["pending", "sent", "received", "failed"]),
        ("blocked", bool),
        ("labels", list[str]),
        ("folder", Annotated[Folder, Meta(description=FOLDER)], "inbox"),
        ("awaiting", Annotated[Awaiting | None, Meta(description=AWAITING)], None),
        ("attachments_read", bool),
        ("attachments", list[ShownAttachment]),
        ("recipients", list[ShownRecipient] | UnsetType, UNSET),
        ("hold", ShownHold | UnsetType, UNSET),
        ("captured", bool | UnsetType, UNSET),
        ("imported", Annotated[bool, Meta(description=IMPORTED)] | UnsetType, UNSET),
    ],
    rename="camel",
    kw_only=True,
)
NewLabels = Annotated[
    list[Annotated[str, Meta(extra_json_schema={"pattern": labels.PATTERN})]], Meta(max_length=100)
]
RawMessage = Annotated[Raw, Message]
RawMessages = list[RawMessage]


class MessagePage(Struct, rename="camel", frozen=True):
    data: RawMessages
    total: int
    truncated: Truncated | UnsetType = UNSET


RawMessagePage = Annotated[Raw, MessagePage]


class TextQuery(Struct, frozen=True):
    offset: Annotated[
        int, Meta(ge=0, le=MAX_WHOLE_CHARS, description="At which character the piece begins.")
    ] = 0


class AttachmentText(Struct, rename="camel", frozen=True):
    """A piece of the text of a file, of at most 50,000 characters."""

    filename: str
    content_type: str
    extraction_method: str
    text: str
    offset: Annotated[int, Meta(description="Where the piece begins.")]
    total: Annotated[int, Meta(description="How many characters the whole text has.")]


def list_inbox_messages(tx: Tx, inbox: Inbox, query: MessageQuery, links: Links) -> RawMessagePage:
    """List the messages of an inbox across all threads, newest first"""
    found, total = message_lists.list_of_inbox(
        tx, inbox.id, query.direction, query.limit, query.offset, query.include
    )
    shown, is_cut = message_json.to_page(tx, found, links)
    ending = b'],"total":%d%s}' % (total, b',"truncated":true' if is_cut else b"")
    return Raw(b"".join((b'{"data":[', *shown, ending)))


def get_message(tx: Tx, caller: Caller, message_id: str, links: Links) -> RawMessage:
    """Get a message"""
    return show_message(tx, caller.scope, message_id, links)


def show_message(tx: Tx, scope: Scope, message_id: str, links: Links) -> Raw:
    message = messages.get(tx, scope, message_id)
    shown = message_json.to_json(tx, [message], links)[0]
    recipients = [ShownRecipient.of(item) for item in deliveries.list_of_message(tx, message.id)]
    if not recipients:
        return Raw(shown)
    return Raw(b'%s,"recipients":%s}' % (shown[:-1], msgspec.json.encode(recipients)))


class MessageChange(Struct, rename="camel", frozen=True):
    send_at: (
        Annotated[
            str,
            Meta(
                description="When to send a scheduled message instead, with time zone.",
                examples=["2026-11-14T10:05:00Z"],
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | UnsetType
    ) = UNSET
    add_labels: NewLabels = []
    remove_labels: NewLabels = []


def change_message(
    tx: Tx, caller: Caller, message_id: str, body: MessageChange, config: Config, links: Links, now: int
) -> RawMessage:
    """Add labels to a message and remove some, or reschedule it"""
    if body.send_at is not UNSET:
        require_any(caller.permissions, SENDING)
    message = messages.get(tx, caller.scope, message_id)
    if body.send_at is UNSET and not body.add_labels and not body.remove_labels:
        raise BadRequest("There is nothing to change: send addLabels, removeLabels or sendAt.")
    if body.send_at is not UNSET:
        moment = parse_moment(body.send_at)
        require_ahead(moment, now)
        decide.reschedule(tx, caller.scope, message.id, moment, Decision.of(caller, config.base_url, now))
    if body.add_labels or body.remove_labels:
        change = LabelChange(body.add_labels, body.remove_labels)
        change_labels(tx, inboxes.get(tx, caller.scope, message.inbox_id), [message.id], change, now)
    return show_message(tx, caller.scope, message.id, links)


class LabelChange(Struct, rename="camel", frozen=True):
    add_labels: list[str] = []
    remove_labels: list[str] = []
    is_read: bool | None = None  # None: as it is
    is_trashed: bool | None = None


def change_labels(tx: Tx, inbox: Inbox, message_ids: Sequence[str], body: LabelChange, now: int) -> None:
    """Change labels of single messages, not of their threads. A label both added and removed is removed."""
    by_thread: dict[str, list[str]] = {}
    found = [each for each in messages.list_outlines(tx, message_ids) if each.inbox_id == inbox.id]
    if body.is_trashed is not None:
        inboxes.lock(tx, inbox.id)
        move = trash.add if body.is_trashed else trash.restore
        move(tx, inbox.id, [message.id for message in found], now)
    if not (body.add_labels or body.remove_labels or body.is_read is not None):
        return
    for message in found:
        by_thread.setdefault(message.thread_id, []).append(message.id)
    for thread_id, of_thread in sorted(by_thread.items()):
        if not thread_id:
            raise BadRequest("A policy stopped this message: it has no labels until it is released.")
        thread = threads.get(tx, inbox.scope, thread_id)
        labels.change_of_messages(tx, thread, of_thread, body.add_labels, body.remove_labels, now)
        if body.is_read is not None:
            labels.mark_seen(tx, thread, of_thread, body.is_read, now)


def get_attachment_text(
    tx: Tx, caller: Caller, message_id: str, filename: str, query: TextQuery
) -> AttachmentText:
    """Get the text found in an attachment, a piece of a long one"""
    message = messages.get(tx, caller.scope, message_id)
    file = attachments.get(tx, message.id, filename)
    found = attachments.piece_of_text(tx, message.id, file, query.offset)
    method = file.extraction_method or ""
    return show_item(AttachmentText, file, extraction_method=method, **structs.asdict(found))


def delete_message(tx: Tx, caller: Caller, message_id: str, now: int) -> list[str]:
    """Permanently delete a message; unsent email is no longer sent"""
    message = messages.get(tx, caller.scope, message_id)
    where = inboxes.get(tx, caller.scope, message.inbox_id).scope
    audit.record_by(tx, caller, "message.deleted", message.id, now, within=where)
    return deletion.remove_message(tx, caller.scope, message.id, now)


def release_message(
    tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int
) -> RawMessage:
    """Release a message that a policy stopped, as if it had just arrived"""
    inbox_id = messages.get(tx, caller.scope, message_id).inbox_id
    inbox = inboxes.lock(tx, inbox_id)  # of two concurrent requests the second sees the first
    message = messages.get(tx, caller.scope, message_id)
    if message.is_junk:
        raise NothingToDo("No policy stopped this message. It is in Junk: POST …/not-junk lets it in.")
    if not message.is_blocked or examine.is_waiting(tx, message.id):
        raise NothingToDo("No policy stopped this message.")
    audit.record_by(tx, caller, "message.released", message.id, now, within=inbox.scope)
    admit.release(tx, inbox, message, config.base_url, now)
    return show_message(tx, caller.scope, message.id, links)


def retry_message(tx: Tx, caller: Caller, message_id: str, links: Links, now: int) -> RawMessage:
    """Try again now: what failed or waits is due at once"""
    addresses = decide.retry(tx, caller.scope, message_id, now)
    if not addresses:
        raise NothingToDo("No recipient of this message failed or waits.")
    tx.ring(deliveries.BELL)
    return show_message(tx, caller.scope, message_id, links)


def cancel_message(
    tx: Tx, caller: Caller, message_id: str, config: Config, links: Links, now: int
) -> RawMessage:
    """Cancel delivery to the recipients that have not accepted yet"""
    decide.cancel(tx, caller.scope, message_id, Decision.of(caller, config.base_url, now))
    return show_message(tx, caller.scope, message_id, links)
