"""Mails that were read, put into their inboxes: threads, messages, events; many mails by few statements."""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET, Struct

from postroom import attachments, checks, ids, inboxes, messages, threads
from postroom.announce import announce_all
from postroom.attachments import Attachment
from postroom.checks import Check
from postroom.clock import to_iso
from postroom.events import MESSAGE_RECEIVED, News
from postroom.inboxes import Inbox
from postroom.mail.address import Address, mailbox_of, normalize
from postroom.mail.bounce import Report
from postroom.mail.parse import ParsedMail
from postroom.mail.return_path import BouncePath
from postroom.messages import INBOUND, RECEIVED, Document, NewMessage, Verdicts
from postroom.report import apply_report
from postroom.storage.database import Tx
from postroom.threads import Thread

BODY_MAX_CHARACTERS = 1_000_000
PARTICIPANTS_PER_MAIL = 200
PART_MAX_BYTES = 2 * 1024 * 1024


class Destination(Struct, frozen=True):
    """An inbox; with the signed return path when the mail came to that instead of the inbox's address."""

    inbox_id: str
    bounce_path: BouncePath | None = None


class Arrival(Struct, frozen=True):
    """A mail as a door hands it over. `peer_ip` is "" for mail that never left this server."""

    destinations: tuple[Destination, ...]
    raw: bytes
    trace: bytes  # our own Received field, put before the mail
    peer_ip: str
    helo: str
    mail_from: str


class ReadMail(Struct, frozen=True):
    """All that is known of a mail before it is put into an inbox."""

    mail: ParsedMail
    body_text: str
    reply_text: str
    codes: list[str]
    links: list[str]
    attachments: tuple[Attachment, ...]
    automated: bool
    verdicts: Verdicts
    content_hash: str
    needs_check: bool
    report: Report | None  # of a bounce or a complaint


class Incoming(Struct, frozen=True):
    """A mail that was read, on its way into its inboxes. Its bytes are `kept`, or in a blob."""

    arrival: Arrival
    read: ReadMail
    kept: bytes | None
    blob: str | None
    base_url: str
    now: int


class Copy(Struct, frozen=True):
    """A mail in one inbox, in its thread. `number` is the place of the mail among those stored with it."""

    number: int
    incoming: Incoming
    destination: Destination
    thread: Thread
    is_start: bool
    is_new_participant: bool


class Stored(Struct, frozen=True):
    copy: Copy
    inbox: Inbox
    document: Document


def deposit(tx: Tx, mails: list[Incoming]) -> list[list[str]]:
    """Gives for each mail the bells to ring after the commit."""
    return [bells for part in unrelated(mails) for bells in deposit_unrelated(tx, part)]


def unrelated(mails: list[Incoming]) -> Iterator[list[Incoming]]:
    """Parts in which no mail answers another, so that each finds what it answers in the database.

    Large mails are parts of their own: their rows are not in memory together.
    """
    part: list[Incoming] = []
    known: set[str] = set()
    size_bytes = 0
    for incoming in mails:
        mail, size = incoming.read.mail, len(incoming.arrival.raw)
        is_answer = not (known.isdisjoint(mail.in_reply_to) and known.isdisjoint(mail.references))
        if part and (is_answer or size_bytes + size > PART_MAX_BYTES):
            yield part
            part, known, size_bytes = [], set(), 0
        part.append(incoming)
        known.add(mail.message_id)
        size_bytes += size
    yield part


def deposit_unrelated(tx: Tx, mails: list[Incoming]) -> list[list[str]]:
    copies = [put_into_thread(tx, *taken) for taken in take_over(tx, mails)]
    owners = count_in_inboxes(tx, copies)
    stored = [to_stored(owners[copy.thread.inbox_id], copy) for copy in copies]
    store(tx, stored)
    return tell(tx, mails, stored)


def take_over(tx: Tx, mails: list[Incoming]) -> list[tuple[int, Incoming, Destination]]:
    """A mail for each of its inboxes, but not where the inbox has the same mail already."""
    handed = [
        (number, mail, destination)
        for number, mail in enumerate(mails)
        for destination in mail.arrival.destinations
    ]
    are_new = messages.take_over(
        tx, [(destination.inbox_id, mail.read.content_hash, mail.now) for _, mail, destination in handed]
    )
    return [taken for taken, is_new in zip(handed, are_new, strict=True) if is_new]


def put_into_thread(tx: Tx, number: int, incoming: Incoming, destination: Destination) -> Copy:
    mail, inbox_id = incoming.read.mail, destination.inbox_id
    joined = threads.resolve(tx, inbox_id, mail.in_reply_to, mail.references)
    if joined is None:
        started = threads.new(inbox_id, mail.subject, is_read=False, now=incoming.now)
        return Copy(number, incoming, destination, started, is_start=True, is_new_participant=False)
    is_new = not threads.has_participant(tx, joined.id, mail.from_address)
    threads.add_participants(tx, [(joined.id, mail.from_address)])  # known to the next mail of this thread
    thread = threads.add_message(tx, joined, is_read=False, now=incoming.now)
    return Copy(number, incoming, destination, thread, is_start=False, is_new_participant=is_new)


def count_in_inboxes(tx: Tx, copies: list[Copy]) -> dict[str, Inbox]:
    """In the order of their ids, so that two nodes never wait for each other."""
    counts = Counter(copy.thread.inbox_id for copy in copies)
    started = Counter(copy.thread.inbox_id for copy in copies if copy.is_start)
    return {
        each: inboxes.count(tx, each, inbound=counts[each], new_threads=started[each], unread=started[each])
        for each in sorted(counts)
    }


def store(tx: Tx, stored: list[Stored]) -> None:
    threads.add_all(tx, [each.copy.thread for each in stored if each.copy.is_start])
    messages.add_all(tx, [to_new_message(each) for each in stored])
    attachments.add_all(
        tx, [(each.document.id, file) for each in stored for file in each.copy.incoming.read.attachments]
    )
    threads.add_participants(
        tx,
        [
            (each.document.thread_id, address)
            for each in stored
            for address in participants(each.copy.incoming.read.mail)
        ],
    )
    inboxes.add_correspondents(
        tx, [(each.inbox.id, each.copy.incoming.read.mail.from_address) for each in stored]
    )


def tell(tx: Tx, mails: list[Incoming], stored: list[Stored]) -> list[list[str]]:
    """The events, or the checks that will record them. Gives for each mail the bells to ring."""
    bells: list[list[str]] = [[] for _ in mails]
    unchecked = [each for each in stored if each.copy.incoming.read.needs_check]
    checks.add_all(tx, [to_check(each) for each in unchecked])
    for each in unchecked:
        bells[each.copy.number] += [checks.BELL]
    ready = [each for each in stored if not each.copy.incoming.read.needs_check]
    told = announce_all(tx, [to_news(each) for each in ready], mails[0].base_url)
    for each, rung in zip(ready, told, strict=True):
        bells[each.copy.number] += rung
    for each in stored:
        bells[each.copy.number] += follow_report(tx, each)
    return bells


def follow_report(tx: Tx, stored: Stored) -> list[str]:
    """What a bounce or a complaint means for the mail that it is about."""
    incoming = stored.copy.incoming
    if incoming.read.report is None:
        return []
    return apply_report(
        tx,
        stored.inbox,
        incoming.read.report,
        stored.copy.destination.bounce_path,
        incoming.base_url,
        incoming.now,
    )


def to_new_message(stored: Stored) -> NewMessage:
    incoming = stored.copy.incoming
    return NewMessage(
        document=stored.document,
        status=RECEIVED,
        from_address=incoming.read.mail.from_address,
        has_attachments=bool(incoming.read.attachments),
        raw=incoming.kept,
        blob=incoming.blob,
        created_at=incoming.now,
        trace_bytes=len(incoming.arrival.trace),
    )


def to_check(stored: Stored) -> Check:
    incoming = stored.copy.incoming
    arrival = incoming.arrival
    return Check(stored.document.id, arrival.peer_ip, arrival.helo, arrival.mail_from, incoming.now)


def to_news(stored: Stored) -> News:
    incoming = stored.copy.incoming
    return News(
        stored.inbox.account_id, MESSAGE_RECEIVED, stored.document, incoming.read.attachments, incoming.now
    )


def to_stored(inbox: Inbox, copy: Copy) -> Stored:
    return Stored(copy, inbox, to_document(inbox, copy))


def to_document(inbox: Inbox, copy: Copy) -> Document:
    read, mail, now = copy.incoming.read, copy.incoming.read.mail, copy.incoming.now
    return Document(
        id=ids.new(ids.MESSAGE, now),
        thread_id=copy.thread.id,
        inbox_id=inbox.id,
        direction=INBOUND,
        from_addr=mail.from_addr,
        to_addr=inbox.address,
        header_to=mail.header_to,
        delivery_role=delivery_role(inbox.address, mail),
        cc=[str(address) for address in mail.cc],
        subject=mail.subject,
        body_text=read.body_text,
        body_html=mail.body_html[:BODY_MAX_CHARACTERS],
        created_at=to_iso(now),
        rfc_message_id=mail.message_id,
        reply_text=read.reply_text,
        auth=read.verdicts,
        automated=read.automated,
        new_participant=copy.is_new_participant,
        codes=read.codes,
        links=read.links,
        parse_error=mail.parse_error or UNSET,
    )


def delivery_role(address: str, mail: ParsedMail) -> str:
    """`to` unless the inbox stands in Cc alone: mail by Bcc or from a list is for it too."""
    return "cc" if _is_among(address, mail.cc) and not _is_among(address, mail.to) else "to"


def _is_among(address: str, listed: tuple[Address, ...]) -> bool:
    return any(mailbox_of(other.address) == address for other in listed)


def participants(mail: ParsedMail) -> list[str]:
    listed = [other.address for other in (*mail.to, *mail.cc)][:PARTICIPANTS_PER_MAIL]
    return [mail.from_address, *(normalize(other) for other in listed if other)]
