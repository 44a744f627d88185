"""Messages and threads of /v0, made from the rows."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.clock import to_iso
from postroom.fields import iso
from postroom.mailbox import (
    attachments,
    documents,
    holds,
    inboxes,
    keyset_listing,
    labels,
    messages,
    raw_mails,
    thread_digests,
)
from postroom.mailbox.attachments import LINK_LIFETIME, Attachment
from postroom.mailbox.documents import Document
from postroom.mailbox.drafts import KeptFile
from postroom.mailbox.holds import Hold
from postroom.mailbox.keyset_listing import ThreadFacts
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import FAILED, OUTBOUND, PENDING, SENT, Message
from postroom.mailbox.threads import Thread
from postroom.resources import Tx
from postroom.web.agentmail import shapes
from postroom_mail.mime import headers
from postroom_mail.mime.address import parse_list
from postroom_mail.mime.parse import MAX_IN_REPLY_TO, MAX_REFERENCES

AT_ONCE = 20  # messages that are in memory together
THREADS_AT_ONCE = 5
LOOKED_AT = 20  # messages of a thread whose people and files are shown in a list
WAITING = (holds.HELD, holds.SCHEDULED)
REFUSED = (holds.REJECTED, holds.EXPIRED, holds.CANCELLED)

RECEIVED_LABEL, SENT_LABEL, UNREAD, TRASH = "received", "sent", "unread", "trash"
HELD, SCHEDULED, DELIVERED, BOUNCED, REJECTED = "held", "scheduled", "delivered", "bounced", "rejected"
SPAM, BLOCKED, UNAUTHENTICATED = "spam", "blocked", "unauthenticated"
IMPORTED = "imported"  # put here by a mail client or an import, not received
# Derived from our fields, never set by anybody.
SYSTEM = frozenset(
    (
        RECEIVED_LABEL,
        SENT_LABEL,
        HELD,
        SCHEDULED,
        DELIVERED,
        BOUNCED,
        REJECTED,
        SPAM,
        BLOCKED,
        UNAUTHENTICATED,
        IMPORTED,
        "complained",
        "delayed",
        "opened",
    )
)

# Stored differently, but set like any other.
FLAGS = frozenset((UNREAD, TRASH))
# What a list shows only if asked.
HIDDEN = frozenset((SPAM, TRASH, BLOCKED, UNAUTHENTICATED))


def hidden_from(caller: Caller) -> frozenset[str]:
    """Return the labels that a key with /v0 permissions may not see."""
    if caller.words is None:
        return frozenset()
    return frozenset(label for label in HIDDEN if f"label_{label}_read" not in caller.words)


class ReadBytes(Struct):
    """How much a list has read so far."""

    total: int = 0


def show_by_ids(
    tx: Tx, message_ids: Sequence[str], read: ReadBytes | None = None, *, with_origins: bool = False
) -> list[shapes.Message]:
    """Return those that exist, in the given order, as a list shows them."""
    shown: list[shapes.Message] = []
    for start in range(0, len(message_ids), AT_ONCE):
        found = messages.list_outlines(tx, message_ids[start : start + AT_ONCE])
        shown += show_messages(tx, found, with_origins=with_origins)
        if read is not None:
            read.total += sum(len(message.stored[0]) for message in found)
    return shown


def show_whole(tx: Tx, message_ids: Sequence[str]) -> list[shapes.Message]:
    """Return messages with their texts, as many as fit into a page."""
    fitting = documents.count_fitting(tx, message_ids)
    return show_messages(tx, messages.list_by_ids(tx, message_ids[:fitting]), is_whole=True)


def show_messages(
    tx: Tx, found: Sequence[Message], *, is_whole: bool = False, with_origins: bool = False
) -> list[shapes.Message]:
    """Return messages as shown.

    `with_origins` adds which messages each one answers; whole messages have it always.
    """
    message_ids = [message.id for message in found]
    addresses = inboxes.addresses_of(tx, sorted({message.inbox_id for message in found}))
    given, unread = labels.of_messages(tx, message_ids), labels.find_unread(tx, message_ids)
    trashed = keyset_listing.find_trashed(tx, message_ids)
    filed = [each.id for each in found if each.has_attachments]
    files = attachments.list_of_messages(tx, filed, with_text=False)
    held = holds.list_of_messages(tx, [each.id for each in found if each.has_hold])
    sizes, doubles = raw_mails.sizes(tx, message_ids), keyset_listing.find_later_doubles(tx, message_ids)
    heads = raw_mails.heads(tx, message_ids) if is_whole or with_origins else {}
    shown = []
    for message in found:
        document = documents.decode(message.document)
        own = labels_of(message, document, held.get(message.id), message.id in unread)
        own |= {TRASH} if message.id in trashed else set()
        own |= {IMPORTED} if message.is_imported else set()
        shown.append(
            shapes.Message(
                inbox_id=addresses.get(message.inbox_id, ""),
                thread_id=message.thread_id,
                message_id=name_of(message, document, message.id in doubles),
                labels=sorted(own | named_by_people(given.get(message.id, ()))),
                timestamp=document.created_at,
                from_=document.from_addr,
                to=mailboxes(document.header_to) or [document.to_addr],
                cc=document.cc or None,
                bcc=document.bcc or None,
                subject=document.subject,
                preview=preview(document.reply_text or document.body_text),
                attachments=[show_file(message.id, file.position, file) for file in files.get(message.id, ())]
                or None,
                size=sizes.get(message.id, 0),
                created_at=document.created_at,
                updated_at=document.created_at,
            )
        )
        if message.id in heads:
            shown[-1] = with_origin(shown[-1], heads[message.id])
        if is_whole:
            shown[-1] = with_texts(shown[-1], document)
    return shown


def with_origin(shown: shapes.Message, head: bytes) -> shapes.Message:
    small = head.lower()
    if b"in-reply-to" not in small and b"references" not in small:
        return shown
    fields = headers.split(head, 0).headers
    answered = headers.message_ids(fields.text("in-reply-to"), MAX_IN_REPLY_TO)
    named = headers.message_ids(fields.text("references"), MAX_REFERENCES)
    return replace(shown, in_reply_to=next(iter(answered), None), references=list(named) or None)


def with_texts(shown: shapes.Message, document: Document) -> shapes.Message:
    return replace(
        shown,
        text=document.body_text or None,
        html=document.body_html or None,
        extracted_text=document.reply_text or None,
        reply_to=mailboxes(document.reply_to or "") or None,
        headers=document.headers or None,
    )


def name_of(message: Message, document: Document, is_double: bool) -> str:
    """Return the Message-ID.

    If it is missing, or an earlier email of the inbox has it, return the message's own id.
    """
    return message.id if is_double or not document.rfc_message_id else document.rfc_message_id


def name_by_id(tx: Tx, message_id: str) -> str | None:
    message = next(iter(messages.list_outlines(tx, [message_id])), None)
    if message is None:
        return None
    is_double = bool(keyset_listing.find_later_doubles(tx, [message_id]))
    return name_of(message, documents.decode(message.document), is_double)


def labels_of(message: Message, document: Document, hold: Hold | None, is_unread: bool) -> set[str]:
    """Return the system labels, derived from the state of a message."""
    if document.direction == OUTBOUND:
        return labels_of_sent(message.status, None if hold is None else hold.state)
    found = {RECEIVED_LABEL}
    found |= {UNREAD} if is_unread else set()
    found |= {BLOCKED} if message.is_blocked else set()
    found |= {SPAM} if document.verdict == "malicious" or message.is_junk else set()
    is_proved = document.auth is None or document.auth.dmarc != "fail"
    return found if is_proved else found | {UNAUTHENTICATED}


def named_by_people(given: Iterable[str]) -> set[str]:
    """Return the labels without those named like system labels: in /v1 these have no such meaning."""
    return {label for label in given if labels.fold(label) not in SYSTEM | FLAGS}


def labels_of_sent(status: str, hold: str | None) -> set[str]:
    if status == PENDING and hold in WAITING:
        return {HELD} if hold == holds.HELD else {SCHEDULED}
    if status == FAILED:
        return {REJECTED} if hold in REFUSED else {SENT_LABEL, BOUNCED}
    return {SENT_LABEL, DELIVERED} if status == SENT else {SENT_LABEL}


def preview(text: str) -> str | None:
    return thread_digests.preview(text) or None


def mailboxes(field: str) -> list[str]:
    return [str(each) for each in parse_list(field)]


# --- files


def file_id(owner_id: str, position: int) -> str:
    return f"{owner_id}.{position}"


def show_file(owner_id: str, position: int, file: Attachment | KeptFile) -> shapes.ShownFile:
    """Return a file of a message or a draft."""
    return shapes.ShownFile(file_id(owner_id, position), file.size_bytes, file.filename, file.content_type)


def show_link(
    tx: Tx, owner_id: str, position: int, file: Attachment | KeptFile, links: Links
) -> shapes.ShownFile:
    """Return a file with a link that needs no key.

    The link is valid for 15 minutes and only while its message or draft exists.
    """
    signed = replace(links, secret=attachments.link_secret(tx))
    return replace(
        show_file(owner_id, position, file),
        download_url=signed.url(owner_id, file.filename),
        expires_at=to_iso(links.now + LINK_LIFETIME),
    )


# --- threads


def show_threads(tx: Tx, found: Sequence[Thread], read: ReadBytes | None = None) -> list[shapes.Thread]:
    thread_ids = [thread.id for thread in found]
    newest = keyset_listing.newest_of_threads(tx, found, LOOKED_AT)
    facts, given = keyset_listing.facts_of_threads(tx, thread_ids), labels.of_threads(tx, thread_ids)
    return [
        show_thread(
            thread,
            show_by_ids(tx, newest[thread.id], read),
            facts.get(thread.id, ThreadFacts()),
            given.get(thread.id, ()),
        )
        for thread in found
    ]


def show_thread(
    thread: Thread, newest: Sequence[shapes.Message], facts: ThreadFacts, given: Iterable[str]
) -> shapes.Thread:
    oldest_first = list(reversed(newest))
    last = newest[0] if newest else None
    return shapes.Thread(
        inbox_id="" if last is None else last.inbox_id,
        thread_id=thread.id,
        labels=sorted(named_by_people(given).union(*(message.labels for message in newest))),
        timestamp=to_iso(thread.last_message_at) if last is None else last.timestamp,
        received_timestamp=iso(facts.received_at),
        sent_timestamp=iso(facts.sent_at),
        senders=list(dict.fromkeys(message.from_ for message in oldest_first)),
        recipients=list(
            dict.fromkeys(each for message in oldest_first for each in (*message.to, *(message.cc or ())))
        ),
        subject=thread.subject,
        preview=None if last is None else last.preview,
        attachments=[file for message in oldest_first for file in message.attachments or ()] or None,
        last_message_id="" if last is None else last.message_id,
        message_count=thread.message_count,
        size=facts.size_bytes,
        created_at=to_iso(thread.created_at),
        updated_at=to_iso(thread.last_message_at) if last is None else last.timestamp,
    )
