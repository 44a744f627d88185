"""Mails that were read, put into their inboxes: threads, messages, events; many mails by few statements."""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET, Struct

from postroom import ids
from postroom.clock import to_iso
from postroom.events.announce import announce_all
from postroom.events.events import MESSAGE_RECEIVED, News
from postroom.inward import examinations
from postroom.inward.bounces import apply_report
from postroom.inward.examinations import Check
from postroom.mail.address import Address, mailbox_of, normalize
from postroom.mail.bounce import Report
from postroom.mail.parse import ParsedMail
from postroom.mail.return_path import BouncePath
from postroom.mailbox import attachments, inboxes, messages, threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND, RECEIVED, Document, NewMessage, Verdicts
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx

BODY_MAX_CHARACTERS = 1_000_000
PARTICIPANTS_PER_MAIL = 200
PART_MAX_SIZE = 1024 * 1024


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


class Handed(Struct, frozen=True):
    """A mail for one inbox. `number` is the place of the mail among those stored with it."""

    number: int
    incoming: Incoming
    destination: Destination

    @property
    def mail(self) -> ParsedMail:
        return self.incoming.read.mail

    @property
    def inbox_id(self) -> str:
        return self.destination.inbox_id


class Copy(Struct, frozen=True):
    """A mail in its thread in one inbox."""

    handed: Handed
    thread: Thread
    is_start: bool
    is_new_participant: bool

    @property
    def incoming(self) -> Incoming:
        return self.handed.incoming

    @property
    def mail(self) -> ParsedMail:
        return self.handed.mail


class Stored(Struct, frozen=True):
    copy: Copy
    inbox: Inbox
    document: Document

    @property
    def incoming(self) -> Incoming:
        return self.copy.incoming

    @property
    def number(self) -> int:
        return self.copy.handed.number


def deposit(tx: Tx, mails: list[Incoming]) -> list[list[str]]:
    """Gives for each mail the bells to ring after the commit."""
    bells: list[list[str]] = [[] for _ in mails]
    taken = take_over(tx, mails)
    owners = count_mails(tx, taken)
    for part in in_parts(taken):
        stored = store(tx, part, owners)
        for number, rung in tell(tx, stored):
            bells[number] += rung
    return bells


def take_over(tx: Tx, mails: list[Incoming]) -> list[Handed]:
    """A mail for each of its inboxes, but not where the inbox has the same mail already."""
    handed = [
        Handed(number, mail, destination)
        for number, mail in enumerate(mails)
        for destination in mail.arrival.destinations
    ]
    are_new = messages.take_over(
        tx, [(each.inbox_id, each.incoming.read.content_hash, each.incoming.now) for each in handed]
    )
    return [each for each, is_new in zip(handed, are_new, strict=True) if is_new]


def count_mails(tx: Tx, taken: list[Handed]) -> dict[str, Inbox]:
    """Before anything else, and in the order of the ids: so nodes wait for each other in one order only.

    A mail that names no other starts a thread for sure.
    """
    counts = Counter(each.inbox_id for each in taken)
    started = Counter(each.inbox_id for each in taken if not names_others(each.mail))
    return {
        inbox_id: inboxes.count(
            tx, inbox_id, inbound=counts[inbox_id], new_threads=started[inbox_id], unread=started[inbox_id]
        )
        for inbox_id in sorted(counts)
    }


def names_others(mail: ParsedMail) -> bool:
    return bool(mail.in_reply_to or mail.references)


def in_parts(taken: list[Handed]) -> Iterator[list[Handed]]:
    """Parts in which no mail answers another, so that each finds what it answers in the database.

    They are small as well, since all rows of a part are in memory together.
    """
    part: list[Handed] = []
    known: set[str] = set()
    size = 0
    for each in taken:
        is_answer = not (known.isdisjoint(each.mail.in_reply_to) and known.isdisjoint(each.mail.references))
        if part and (is_answer or size + row_size(each.incoming) > PART_MAX_SIZE):
            yield part
            part, known, size = [], set(), 0
        part.append(each)
        known.add(each.mail.message_id)
        size += row_size(each.incoming)
    if part:
        yield part


def row_size(incoming: Incoming) -> int:
    """In bytes or characters; the text stands in the message and in the event."""
    read = incoming.read
    texts = len(read.body_text) + len(read.reply_text)
    return len(incoming.kept or b"") + 2 * texts + len(read.mail.body_html)


def store(tx: Tx, part: list[Handed], owners: dict[str, Inbox]) -> list[Stored]:
    copies = [put_into_thread(tx, handed) for handed in part]
    count_late_starts(tx, copies)
    stored = [to_stored(owners[copy.handed.inbox_id], copy) for copy in copies]
    started = [each for each in stored if each.copy.is_start]
    threads.add_all(tx, [each.copy.thread for each in started])
    threads.add_participants(
        tx,
        [(each.copy.thread.id, address) for each in started for address in participants(each.copy.mail)],
    )
    messages.add_all(tx, [to_new_message(each) for each in stored])
    attachments.add_all(
        tx, [(each.document.id, file) for each in stored for file in each.incoming.read.attachments]
    )
    inboxes.add_correspondents(tx, [(each.inbox.id, each.copy.mail.from_address) for each in stored])
    return stored


def put_into_thread(tx: Tx, handed: Handed) -> Copy:
    mail, now = handed.mail, handed.incoming.now
    joined = threads.resolve(tx, handed.inbox_id, mail.in_reply_to, mail.references)
    if joined is None:
        started = threads.new(handed.inbox_id, mail.subject, is_read=False, now=now)
        return Copy(handed, started, is_start=True, is_new_participant=False)
    is_new = not threads.has_participant(tx, joined.id, mail.from_address)
    threads.add_participants(tx, [(joined.id, address) for address in participants(mail)])
    thread = threads.add_message(tx, joined, is_read=False, now=now)
    return Copy(handed, thread, is_start=False, is_new_participant=is_new)


def count_late_starts(tx: Tx, copies: list[Copy]) -> None:
    """Threads that mails start because what they name is not here."""
    late = Counter(copy.handed.inbox_id for copy in copies if copy.is_start and names_others(copy.mail))
    for inbox_id, count in late.items():
        inboxes.count(tx, inbox_id, new_threads=count, unread=count)


def tell(tx: Tx, stored: list[Stored]) -> Iterator[tuple[int, list[str]]]:
    """The events, or the checks that will record them. Gives numbers of mails with the bells to ring."""
    unchecked = [each for each in stored if each.incoming.read.needs_check]
    examinations.add_all(tx, [to_check(each) for each in unchecked])
    yield from ((each.number, [examinations.BELL]) for each in unchecked)
    ready = [each for each in stored if not each.incoming.read.needs_check]
    told = announce_all(tx, [to_news(each) for each in ready], stored[0].incoming.base_url)
    yield from ((each.number, rung) for each, rung in zip(ready, told, strict=True))
    yield from ((each.number, follow_report(tx, each)) for each in stored)


def follow_report(tx: Tx, stored: Stored) -> list[str]:
    """What a bounce or a complaint means for the mail that it is about."""
    incoming = stored.incoming
    if incoming.read.report is None:
        return []
    path = stored.copy.handed.destination.bounce_path
    return apply_report(tx, stored.inbox, incoming.read.report, path, incoming.base_url, incoming.now)


def to_new_message(stored: Stored) -> NewMessage:
    incoming = stored.incoming
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
    incoming = stored.incoming
    arrival = incoming.arrival
    return Check(stored.document.id, arrival.peer_ip, arrival.helo, arrival.mail_from, incoming.now)


def to_news(stored: Stored) -> News:
    incoming = stored.incoming
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
