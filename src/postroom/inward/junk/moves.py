"""Moves a message into Junk and back, as somebody says: out of its thread, or in as if it came now."""

from collections.abc import Sequence

from msgspec import structs

from postroom.clock import to_iso
from postroom.inward import admit
from postroom.inward.into_thread import Names
from postroom.mailbox import documents, inboxes, labels, legal_holds, messages, related, threads
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize, parse_list

NAMED = 20  # messages of its thread by which it finds back


def put_into_junk(tx: Tx, inbox: Inbox, message: Message, base_url: str, now: int) -> list[str]:
    """Takes a received message out of its thread. The inbox is locked. Returns the bells to ring."""
    legal_holds.require_may_leave(tx, message.thread_id)
    document = documents.decode(message.document)
    admit.keep(tx, [(message.id, _names(tx, message, document))])
    inboxes.count(tx, inbox.id, inbound=-1, junk=1)
    tx.run("delete from message_labels where message_id = :id", id=message.id)
    bells = admit.put_into_junk(tx, inbox, _with_decision(document, is_junk=True), base_url, now)
    _leave(tx, inbox, message.thread_id)
    return bells


def _leave(tx: Tx, inbox: Inbox, thread_id: str) -> None:
    threads.take_away(tx, thread_id, 1)
    labels.forget_unused(tx, thread_id)
    if threads.is_empty(tx, thread_id):
        related.forget_threads(tx, [thread_id])
    else:
        labels.settle_read(tx, threads.get(tx, inbox.scope, thread_id))


def let_in(tx: Tx, inbox: Inbox, message: Message, base_url: str, now: int) -> list[str]:
    """Lets a message out of Junk as if it came now. The inbox is locked. Returns the bells to ring."""
    inboxes.count(tx, inbox.id, junk=-1)
    names = admit.get_names(tx, message.id)
    document = structs.replace(documents.decode(message.document), created_at=to_iso(now))
    return admit.let_in(tx, inbox, _with_decision(document, is_junk=False), names, now, base_url, now)


def record_decision(tx: Tx, message: Message, is_junk: bool) -> None:
    """Record a person's decision on a message that stays where it is."""
    document = documents.decode(message.document)
    if document.junk is not None and document.junk.is_junk != is_junk:
        messages.set_document(tx, _with_decision(document, is_junk))


def _with_decision(document: Document, is_junk: bool) -> Document:
    """Set the decision. The score stays: only the decision is the person's."""
    if document.junk is None:
        return document
    return structs.replace(document, junk=structs.replace(document.junk, is_junk=is_junk))


def _names(tx: Tx, message: Message, document: Document) -> Names:
    """Return the names of messages that stay in its thread, by which it returns to them."""
    rows = tx.all(
        "select rfc_message_id from messages where thread_id = :thread_id and id <> :id"
        " and rfc_message_id <> '' order by created_at desc, id desc limit :most",
        thread_id=message.thread_id,
        id=message.id,
        most=NAMED,
    )
    senders = _addresses([document.from_addr])
    people = _addresses([document.header_to, *document.cc])
    return Names(
        in_reply_to=[],
        references=[row["rfc_message_id"] for row in rows],
        participants=list(dict.fromkeys([*senders, *people])),
        from_address=senders[0] if senders else "",
        senders=senders,
    )


def _addresses(fields: Sequence[str]) -> list[str]:
    return [normalize(each.address) for field in fields for each in parse_list(field) if each.address]
