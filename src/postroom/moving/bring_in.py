"""Mail from elsewhere, put into an inbox with its threads and dates, as if it had been here all the time.

It makes no event and calls no webhook: it is no news.
"""

from msgspec import structs

from postroom.inward import deposit, suspicion
from postroom.inward.examine import Extractor, look_for_signals, read_files
from postroom.inward.mails import AcceptedMail, Arrival, Destination, ReadMail
from postroom.inward.receive import TooManyHops, read_mail
from postroom.mail.parse import parse_mail
from postroom.mailbox import correspondents, inboxes, messages, raw_mails, threads
from postroom.mailbox.documents import Document, Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND, SENT
from postroom.mailbox.search import indexing
from postroom.moving.mailboxes import MAX_MAIL_BYTES, FiledMail, read
from postroom.resources import Resources
from postroom.storage.database import Tx

ELSEWHERE = "127.0.0.1"  # the peer of mail that was handed over long ago, to another server
UNKNOWN_SENDER = "unknown@invalid"
NOT_JUDGED = "none"


async def bring_in(resources: Resources, extractor: Extractor, inbox: Inbox, filed: FiledMail) -> bool:
    """False for a mail that the inbox has already, or that no server would take."""
    if filed.length > MAX_MAIL_BYTES:
        return False
    try:
        found = await _read(resources, extractor, inbox, filed)
    except TooManyHops:
        return False
    blob = await raw_mails.put_if_large(resources, found.kept.content)
    mail = AcceptedMail(found, resources.config.base_url, filed.at, blob)
    is_new = await resources.db.write(_store, mail, inbox)
    if not is_new:
        await raw_mails.remove_blob(resources, blob)
    return is_new


async def _read(resources: Resources, extractor: Extractor, inbox: Inbox, filed: FiledMail) -> ReadMail:
    raw = read(filed)
    mail_from = filed.mail_from or UNKNOWN_SENDER
    found = read_mail(Arrival((Destination(inbox.id),), raw, b"", ELSEWHERE, "", mail_from))
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
    """The inbox first, as whoever stores mail takes it."""
    inboxes.count(tx, inbox.id)
    if _has(tx, inbox, mail):
        return False
    addressed = deposit.to_each_inbox(mail)
    owners = deposit.count_mails(tx, addressed, frozenset())
    (copy,) = deposit.store(tx, addressed, owners, frozenset())
    assert copy.place is not None, "no policy is asked about mail that is moved"
    threads.mark_read(tx, copy.place.thread, is_read=True)
    if mail.read.mail.from_address == inbox.address:
        _turn_around(tx, inbox, copy.document)
    indexing.enqueue_all(tx, [copy.document.id])
    return True


def _has(tx: Tx, inbox: Inbox, mail: AcceptedMail) -> bool:
    """By its Message-ID; without one, by what it says at that moment."""
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


def _turn_around(tx: Tx, inbox: Inbox, document: Document) -> None:
    """What the inbox itself wrote was sent."""
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
