"""Imports mail from files into an inbox, with its threads and dates.

It is old mail: it makes no event and calls no webhook.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import structs

from postroom.inward import deposit, suspicion
from postroom.inward.examine import Extractor, look_for_signals, read_files
from postroom.inward.mails import AcceptedMail, Arrival, Destination, ReadMail
from postroom.inward.receive import TooManyHops, read_mail
from postroom.mail.parse import parse_mail
from postroom.mailbox import correspondents, inboxes, messages, raw_mails, threads
from postroom.mailbox.documents import Document, Verdicts
from postroom.mailbox.folders import places
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND, SENT
from postroom.mailbox.search import indexing
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom.transfer.mbox import MAX_MAIL_BYTES, FiledMail, read

T = TypeVar("T")

ANOTHER_SERVER = "127.0.0.1"  # in place of the peer, which handed the mail to another server long ago
UNKNOWN_SENDER = "unknown@invalid"
NOT_JUDGED = "none"


async def import_mail(resources: Resources, extractor: Extractor, inbox: Inbox, filed: FiledMail) -> bool:
    """False for a mail that the inbox has already, or that no server would accept."""
    if filed.length > MAX_MAIL_BYTES:
        return False
    try:
        found = await _read(resources, extractor, inbox, read(filed), filed.mail_from or UNKNOWN_SENDER)
    except TooManyHops:
        return False
    blob = await raw_mails.put_if_large(resources, found.kept.content)
    mail = AcceptedMail(found, resources.config.base_url, filed.at, blob)
    is_new = await resources.db.write(_store, mail, inbox)
    if not is_new:
        await raw_mails.remove_blob(resources, blob)
    return is_new


async def import_new(
    resources: Resources,
    extractor: Extractor,
    inbox: Inbox,
    raw: bytes,
    at: int,
    then: Callable[[Tx, Document], T],
) -> T:
    """A mail that a mail program hands over: always a new message. `then` belongs to its transaction."""
    found = await _read(resources, extractor, inbox, raw, UNKNOWN_SENDER)
    blob = await raw_mails.put_if_large(resources, found.kept.content)
    mail = AcceptedMail(found, resources.config.base_url, at, blob)

    def work(tx: Tx) -> T:
        inboxes.lock(tx, inbox.id)
        return then(tx, _add(tx, mail, inbox))

    try:
        return await resources.db.write(work)
    except BaseException:
        await raw_mails.remove_blob(resources, blob)
        raise


async def _read(
    resources: Resources, extractor: Extractor, inbox: Inbox, raw: bytes, mail_from: str
) -> ReadMail:
    found = read_mail(Arrival((Destination(inbox.id),), raw, b"", ANOTHER_SERVER, "", mail_from))
    mail = parse_mail(raw)
    files = await read_files(extractor, mail, list(found.attachments))
    name = suspicion.name_of(mail.from_addr)
    known = await resources.db.read(correspondents.list_trusted, inbox.id, name)
    return structs.replace(
        found,
        attachments=tuple(files),
        needs_examination=False,
        verdicts=Verdicts(NOT_JUDGED, NOT_JUDGED, NOT_JUDGED, found.verdicts.domain),
        findings=look_for_signals(mail, files, NOT_JUDGED, known),
        report=None,
        returned=None,
    )


def _store(tx: Tx, mail: AcceptedMail, inbox: Inbox) -> bool:
    """Locks the inbox first, in the order that everything that stores mail keeps to."""
    inboxes.lock(tx, inbox.id)
    if _has(tx, inbox, mail):
        return False
    _add(tx, mail, inbox)
    return True


def _add(tx: Tx, mail: AcceptedMail, inbox: Inbox) -> Document:
    addressed = deposit.to_each_inbox(mail)
    owners = deposit.count_mails(tx, addressed, frozenset())
    (copy,) = deposit.store(tx, addressed, owners, frozenset())
    assert copy.place is not None, "no policy is asked about mail that is moved"
    threads.mark_read(tx, copy.place.thread, is_read=True)
    if mail.read.mail.from_address == inbox.address:
        _mark_as_sent(tx, inbox, copy.document)
    indexing.enqueue_all(tx, [copy.document.id])
    return copy.document


def _has(tx: Tx, inbox: Inbox, mail: AcceptedMail) -> bool:
    """By its Message-ID; without one, by its date and size."""
    if mail.read.mail.message_id:
        row = tx.one(
            "select 1 as found from messages where inbox_id = :inbox_id and rfc_message_id = :id limit 1",
            inbox_id=inbox.id,
            id=mail.read.mail.message_id,
        )
    else:
        row = tx.one(
            "select 1 as found from messages join raw_mails on raw_mails.message_id = messages.id"
            " where inbox_id = :inbox_id and direction <> 'blocked' and created_at = :at"
            " and size_bytes = :size limit 1",
            inbox_id=inbox.id,
            at=mail.now,
            size=mail.read.size_bytes,
        )
    return row is not None


def _mark_as_sent(tx: Tx, inbox: Inbox, document: Document) -> None:
    """Mail that the inbox itself wrote is sent mail."""
    sent = structs.replace(
        document,
        direction=OUTBOUND,
        delivery_role=None,
        auth=None,
        category=None,
        auto_replyable=False,
        verdict=None,
        signals=[],
    )
    tx.run(
        "update messages set direction = :direction, status = :status where id = :id",
        direction=OUTBOUND,
        status=SENT,
        id=document.id,
    )
    messages.set_document(tx, sent)
    inboxes.count(tx, inbox.id, inbound=-1, outbound=1)
    places.move(tx, inbox.id, document.id, places.SENT)
