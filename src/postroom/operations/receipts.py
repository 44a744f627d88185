"""Receipts: what was shown, who decided, and what left, signed so that anyone can check them elsewhere."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from postroom.accounts import keys, signing_keys
from postroom.accounts.actors import KEY, Actor
from postroom.accounts.audit_entries import SIGNED_IN, Entry
from postroom.accounts.keys import Caller
from postroom.accounts.signing_keys import PublishedKeys
from postroom.clock import to_iso
from postroom.errors import NotFound
from postroom.fields import Timestamp
from postroom.mailbox import documents, holds, messages
from postroom.mailbox.messages import OUTBOUND, Message
from postroom.storage.database import Row, Tx
from postroom_mail.writing.content_hash import content_hash

Sha256 = Annotated[str, Meta(description="Lower-case hex SHA-256.")]


class ReceiptMessage(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    thread_id: str
    rfc_message_id: str
    status: str
    created_at: Timestamp
    submitted_by: Actor | None


class ReceiptContent(Struct, rename="camel", frozen=True):
    """`contentHash` covers what an approval shows, `sha256` the stored bytes before they were signed."""

    content_hash: str
    sha256: Sha256
    size_bytes: int


class ReceiptDecision(Struct, rename="camel", frozen=True):
    """`entryId` and `entryHash` name the audit entry; `rendering` is the version of what was shown."""

    action: str
    at: Timestamp
    requested_at: Timestamp | None
    actor: Actor
    method: Annotated[str, Meta(description=SIGNED_IN)]
    address: str
    user_agent: str
    note: str | None
    content_hash: str | None
    rendering: int | None
    entry_id: str
    entry_hash: str | None


class ReceiptDelivery(Struct, rename="camel", frozen=True):
    """`sha256` covers the bytes that the recipient's server accepted, with their signatures."""

    recipient: str
    state: str
    at: Timestamp | None
    mail_from: str | None
    server: str | None
    tls: str | None
    code: int | None
    reply: str
    sha256: Sha256 | None


class Receipt(Struct, rename="camel", frozen=True):
    """`signature` covers the other fields, as JSON with sorted keys and no spaces: Ed25519, base64url."""

    message: ReceiptMessage
    content: ReceiptContent
    decisions: list[ReceiptDecision]
    deliveries: list[ReceiptDelivery]
    issued_at: Timestamp
    key_id: Annotated[str, Meta(description="A key of /.well-known/postroom-keys.json.")]
    signature: str


class Decided(Struct, rename="camel"):
    """What the audit entry of a decision has in `after`."""

    content_hash: str | None = None
    rendering: int | None = None
    note: str | None = None


def list_signing_keys(tx: Tx) -> PublishedKeys:
    """List the public keys for receipts and heads of the audit log"""
    return signing_keys.publish(tx)


def require_sent(tx: Tx, caller: Caller, message_id: str) -> list[str]:
    """Return the blind copies of a sent message, which belong to its content."""
    message = messages.get(tx, caller.scope, message_id)
    document = documents.decode(message.document)
    if document.direction != OUTBOUND:
        raise NotFound("Only sent messages have a receipt. This one was received.")
    hold = holds.find(tx, message_id)
    return list(hold.bcc) if hold is not None else document.bcc or []


def read_content(raw: bytes, bcc: list[str]) -> ReceiptContent:
    """Return the hashes of a stored email; takes milliseconds for a large one."""
    return ReceiptContent(content_hash(raw, bcc), signing_keys.digest(raw), len(raw))


def sign_receipt(tx: Tx, caller: Caller, message_id: str, content: ReceiptContent, now: int) -> Receipt:
    message = messages.get(tx, caller.scope, message_id)
    key = signing_keys.current(tx)
    receipt = Receipt(
        message=_show(tx, caller, message),
        content=content,
        decisions=[_to_decision(entry) for entry in _list_decisions(tx, message_id)],
        deliveries=[_to_delivery(row) for row in _list_deliveries(tx, message_id)],
        issued_at=to_iso(now),
        key_id=key.id,
        signature="",
    )
    return replace(receipt, signature=key.sign(signing_keys.signed_part(receipt)))


def _show(tx: Tx, caller: Caller, message: Message) -> ReceiptMessage:
    row = tx.one("select key_id from messages where id = :id", id=message.id)
    key_id = row["key_id"] if row is not None else None
    names = keys.names_of(tx, caller.account_id, [key_id] if key_id else [])
    return ReceiptMessage(
        id=message.id,
        inbox_id=message.inbox_id,
        thread_id=message.thread_id or "",
        rfc_message_id=documents.decode(message.document).rfc_message_id,
        status=message.status,
        created_at=to_iso(message.created_at),
        submitted_by=Actor(KEY, key_id, names.get(key_id, "a key that was deleted")) if key_id else None,
    )


def _list_decisions(tx: Tx, message_id: str) -> list[Entry]:
    rows = tx.all(
        "select * from audit where target = :id and inbox_id is not null and action like 'message.%'"
        " order by created_at, id",
        id=message_id,
    )
    return [Entry.from_row(row) for row in rows]


def _to_decision(entry: Entry) -> ReceiptDecision:
    shown = msgspec.json.decode(entry.after or "{}", type=Decided)
    return ReceiptDecision(
        action=entry.action,
        at=to_iso(entry.created_at),
        requested_at=None if entry.asked_at is None else to_iso(entry.asked_at),
        actor=entry.actor,
        method=entry.method,
        address=entry.address,
        user_agent=entry.user_agent,
        note=shown.note,
        content_hash=shown.content_hash,
        rendering=shown.rendering,
        entry_id=entry.id,
        entry_hash=entry.hash,
    )


def _list_deliveries(tx: Tx, message_id: str) -> list[Row]:
    return tx.all(
        "select deliveries.target, deliveries.state, deliveries.finished_at, deliveries.tls,"
        " deliveries.last_code, deliveries.last_reply, attempts.mail_from, attempts.host,"
        " attempts.content_hash from deliveries left join attempts on attempts.delivery_id = deliveries.id"
        " and attempts.number = deliveries.attempts"
        " where deliveries.message_id = :id and deliveries.kind = 'mail' order by deliveries.position",
        id=message_id,
    )


def _to_delivery(row: Row) -> ReceiptDelivery:
    return ReceiptDelivery(
        recipient=row["target"],
        state=row["state"],
        at=None if row["finished_at"] is None else to_iso(row["finished_at"]),
        mail_from=row["mail_from"],
        server=row["host"] or None,
        tls=row["tls"] or None,
        code=row["last_code"],
        reply=row["last_reply"],
        sha256=row["content_hash"],
    )
