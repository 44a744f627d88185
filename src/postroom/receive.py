"""Raw mail to message, event and deliveries: read, then stored in one transaction for all its inboxes."""

import asyncio
import hashlib
from dataclasses import dataclass

from msgspec import UNSET

from postroom import attachments, checks, ids, inboxes, messages, threads
from postroom.announce import announce
from postroom.attachments import Attachment
from postroom.checks import Check
from postroom.clock import to_iso
from postroom.events import MESSAGE_RECEIVED
from postroom.inboxes import Inbox
from postroom.mail import bounce, findings, reply, text
from postroom.mail.address import Address, mailbox_of, normalize
from postroom.mail.bounce import Report
from postroom.mail.extraction import MAX_CONTENT_BYTES
from postroom.mail.parse import ParsedAttachment, ParsedMail, parse_mail
from postroom.mail.return_path import BouncePath
from postroom.messages import INBOUND, RAW_IN_ROW_BYTES, RECEIVED, Document, Verdicts
from postroom.net import guard
from postroom.report import apply_report
from postroom.resources import Resources
from postroom.storage.database import Tx

BODY_MAX_CHARACTERS = 1_000_000
READ_IN_LOOP_BYTES = 32 * 1024
PARTICIPANTS_PER_MAIL = 200
MAX_HOPS = 50


class TooManyHops(Exception):
    """The mail has passed so many servers that it must be going in circles (RFC 5321 section 6.3)."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An inbox; with the signed return path when the mail came to that instead of the inbox's address."""

    inbox_id: str
    bounce_path: BouncePath | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A mail as a door hands it over. `peer_ip` is "" for mail that never left this server."""

    destinations: tuple[Destination, ...]
    raw: bytes
    trace: bytes  # our own Received field, put before the mail
    peer_ip: str
    helo: str
    mail_from: str


@dataclass(frozen=True, slots=True)
class ReadMail:
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


async def receive_mail(resources: Resources, arrival: Arrival) -> None:
    """Durable on return."""
    is_small = len(arrival.raw) <= READ_IN_LOOP_BYTES
    read = read_mail(arrival) if is_small else await asyncio.to_thread(read_mail, arrival)
    if read.mail.received_count > MAX_HOPS:
        raise TooManyHops
    blob = await put_if_large(resources, arrival.trace + arrival.raw)
    bells = await resources.db.write(
        store_mail, arrival, read, blob, resources.config.base_url, resources.now()
    )
    resources.db.ring(*bells)


async def put_if_large(resources: Resources, raw: bytes) -> str | None:
    if len(raw) <= RAW_IN_ROW_BYTES:
        return None
    return await asyncio.to_thread(resources.blobs.put, raw)


def read_mail(arrival: Arrival) -> ReadMail:
    mail = parse_mail(arrival.raw)
    body_text = text.visible(mail.body_text or text.html_to_text(mail.body_html))[:BODY_MAX_CHARACTERS]
    files = tuple(_describe(position, file) for position, file in enumerate(mail.attachments))
    return ReadMail(
        mail=mail,
        body_text=body_text,
        reply_text=reply.reply_text(body_text),
        codes=list(findings.codes(body_text)),
        links=list(findings.links(body_text, mail.body_html)),
        attachments=files,
        automated=mail.automated or (arrival.mail_from == "" and arrival.peer_ip != ""),
        verdicts=unjudged(mail, arrival.peer_ip),
        content_hash=hashlib.sha256(arrival.raw).hexdigest(),
        needs_check=has_to_be_judged(mail, arrival.peer_ip) or any(map(is_unread, files)),
        report=bounce.read_report(arrival.raw) if mail.report_type or arrival.mail_from == "" else None,
    )


def has_to_be_judged(mail: ParsedMail, peer_ip: str) -> bool:
    """SPF says something of public addresses only; a signature can be verified wherever it came from."""
    return mail.has_dkim_signature or (peer_ip != "" and guard.is_public(peer_ip))


def unjudged(mail: ParsedMail, peer_ip: str) -> Verdicts:
    word = "temperror" if has_to_be_judged(mail, peer_ip) else "none"
    return Verdicts(word, word, word, mail.from_address.rpartition("@")[2])


def _describe(position: int, file: ParsedAttachment) -> Attachment:
    method = "skipped_too_large" if len(file.content) > MAX_CONTENT_BYTES else None
    return Attachment(file.filename, position, file.content_type, len(file.content), method)


def is_unread(file: Attachment) -> bool:
    return file.extraction_method is None


def store_mail(
    tx: Tx, arrival: Arrival, read: ReadMail, blob: str | None, base_url: str, now: int
) -> list[str]:
    """Gives the bells to ring after the commit."""
    bells: list[str] = []
    for destination in arrival.destinations:
        if not messages.is_handed_over_again(tx, destination.inbox_id, read.content_hash, now):
            inbox = inboxes.count_message(tx, destination.inbox_id, INBOUND)
            document = store_message(tx, inbox, read, now)
            messages.add_raw(tx, document.id, None if blob else arrival.trace + arrival.raw, blob)
            bells += tell(tx, inbox, document, arrival, read, base_url, now)
            if read.report is not None:
                bells += apply_report(tx, inbox, read.report, destination.bounce_path, base_url, now)
    return bells


def store_message(tx: Tx, inbox: Inbox, read: ReadMail, now: int) -> Document:
    mail = read.mail
    joined = threads.resolve(tx, inbox.id, mail.in_reply_to, mail.references)
    is_new = joined is not None and not threads.has_participant(tx, joined.id, mail.from_address)
    thread = (
        threads.start(tx, inbox.id, mail.subject, is_read=False, now=now)
        if joined is None
        else threads.add_message(tx, joined, is_read=False, now=now)
    )
    document = to_document(inbox, thread.id, read, is_new, now)
    messages.add(tx, document, RECEIVED, mail.from_address, bool(read.attachments), now)
    attachments.add_all(tx, document.id, read.attachments)
    threads.add_participants(tx, thread.id, participants(mail))
    inboxes.add_correspondent(tx, inbox.id, mail.from_address)
    return document


def tell(
    tx: Tx, inbox: Inbox, document: Document, arrival: Arrival, read: ReadMail, base_url: str, now: int
) -> list[str]:
    """The event, or the check that will record it. Gives the bells to ring."""
    if read.needs_check:
        checks.add(tx, Check(document.id, arrival.peer_ip, arrival.helo, arrival.mail_from, now))
        return [checks.BELL]
    return announce(tx, inbox.account_id, MESSAGE_RECEIVED, document, read.attachments, base_url, now)


def to_document(inbox: Inbox, thread_id: str, read: ReadMail, is_new_participant: bool, now: int) -> Document:
    mail = read.mail
    return Document(
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread_id,
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
        new_participant=is_new_participant,
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
