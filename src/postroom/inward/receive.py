"""Raw mail to message, event and deliveries: read, then stored in one transaction for all its inboxes."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from email.utils import parsedate
from functools import cache
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from postroom import traces
from postroom.accounts.people import own_emails
from postroom.errors import is_passing
from postroom.inward import screening
from postroom.inward.appointment import read_appointment
from postroom.inward.arrival_spans import record_received
from postroom.inward.attribute import find_subject
from postroom.inward.deposit import deposit
from postroom.inward.held_values import value_keys
from postroom.inward.junk import words
from postroom.inward.mails import UNKNOWN_PEER, AcceptedMail, Arrival, Origin, ReadMail
from postroom.inward.received_document import BODY_MAX_CHARACTERS
from postroom.inward.sender_checks import (
    awaits_policy,
    needs_sender_checks,
    unchecked,
    with_known_policy,
)
from postroom.mailbox import raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Verdicts
from postroom.processes import analysis, pools
from postroom.processes.analysis import Analysis
from postroom.resources import Resources
from postroom_mail import kind_signs
from postroom_mail.files.extraction import MAX_CONTENT_BYTES
from postroom_mail.html import text
from postroom_mail.html.page import NO_PAGE, HtmlPage, read_page
from postroom_mail.mime import headers, imap_values, parsing_cost
from postroom_mail.mime.parse import UNREAD, ParsedAttachment, ParsedMail, parse_mail, unread
from postroom_mail.reading import codes as codes
from postroom_mail.reading import links, reply
from postroom_mail.reading.body_signs import NO_BODY_SIGNS, BodySigns
from postroom_mail.reading.category import Kind, categorize
from postroom_mail.reports.bounce import may_be_report, read_report, read_returned
from postroom_mail.reports.report import Report

if TYPE_CHECKING:
    from postroom_mail.screening.passage import Passage

AT_ONCE_BYTES = 32 * 1024  # next to all else that a process does
AT_ONCE_IN_WORKER_BYTES = 256 * 1024
MAX_HOPS = 50
PATIENCE_SECONDS = 0.01  # for other emails to share a commit
FAILURES = ("bounce", "delay")
NOT_JUDGED = Verdicts("temperror", "temperror", "temperror", "")
HASH_DIGITS = 38
DATE = re.compile(rb"\n[dD][aA][tT][eE]:([^\r\n]{1,60})")
USUAL_DATE = re.compile(
    r" (?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) ([12]\d{3}) (\d\d):(\d\d):(\d\d) [+-]\d{4}", re.ASCII
)
MONTHS = {name: number for number, name in enumerate(imap_values.MONTHS, 1)}
DATE_WITHIN_BYTES = 8 * 1024
FIRST_YEAR, LAST_YEAR = 1970, 2100
LAST_SECOND = 0xFFFFFFFFFF


class TooManyHops(Exception):
    """The mail has passed so many servers that it must be in a loop (RFC 5321 section 6.3)."""


class Reader(Protocol):
    """Reads an email."""

    async def read(self, arrival: Arrival) -> ReadMail:
        """Raises TooManyHops."""
        ...


class OwnReader:
    """Reads in this process: emails that cost little at once, others in a thread."""

    def __init__(self, at_once_bytes: int) -> None:
        self._at_once_bytes = at_once_bytes

    async def read(self, arrival: Arrival) -> ReadMail:
        is_little = parsing_cost.is_little(arrival.raw, most_bytes=self._at_once_bytes)
        return read_mail(arrival) if is_little else await pools.READING.run(read_mail, arrival)


@cache
def warm_up() -> None:
    """Fills caches, so that the first mail is read as fast as any other."""
    for subject in ("Code", "Código"):
        raw = f"Subject: {subject}\r\n\r\n{subject}\r\n".encode()
        read_mail(Arrival(Origin((), trace=b"", peer_ip=UNKNOWN_PEER, helo="", mail_from=""), raw))


def require_few_hops(raw: bytes) -> None:
    """Raise TooManyHops if an email has too many: a cheap check before it is read."""
    if (
        raw.lower().count(b"received") > MAX_HOPS
        and headers.split(raw, 0).headers.count("received") > MAX_HOPS
    ):
        raise TooManyHops


async def receive_mail(resources: Resources, reader: Reader, arrival: Arrival) -> None:
    """Receive an email durably."""
    await store_mail(resources, await reader.read(arrival))


async def store_mail(resources: Resources, read: ReadMail) -> None:
    """Store an email durably. If that fails as it was read, store it with less of it read."""
    try:
        await _store(resources, read)
    except Exception as error:
        if is_passing(error):
            raise
        Analysis().record_failure("storing", error)
        await _store_simpler(resources, read)


async def _store_simpler(resources: Resources, read: ReadMail) -> None:
    simply, bytes_alone = await pools.READING.run(list, simpler(read))
    try:
        await _store(resources, simply)
    except Exception as error:
        if is_passing(error):
            raise
        await _store(resources, bytes_alone)


async def _store(resources: Resources, read: ReadMail) -> None:
    accepted = await accept(resources, read)
    bells = await resources.db.write_together(deposit, accepted, PATIENCE_SECONDS)
    if not bells:  # all its inboxes have it already: a stored mail always rings
        await raw_mails.remove_blob(resources, accepted.blob)
    analysis.count(read.failed)
    record_received(resources, [accepted])
    resources.db.ring(*bells)


async def accept(resources: Resources, read: ReadMail, *, is_copy: bool = False) -> AcceptedMail:
    """Prepares it for its inboxes. The bytes of a large mail go to a durable blob, out of memory.

    Those of a reviewer's answer and of a report stay in memory too: to verify its author, and to read it.
    """
    if read.awaits_policy:
        read = with_known_policy(resources.resolver, read)
    config, now = resources.config, resources.now()
    is_scanned = bool(config.clamd) and not is_copy
    if is_scanned:
        read = replace(read, needs_examination=True, findings=None)
    about = await find_subject(resources, read.report)
    has_imap = resources.config.imap is not None
    envelope = (
        Analysis().run("envelope", None, lambda: envelope_of(read.kept, len(read.origin.trace)))
        if has_imap
        else None
    )
    blob = await raw_mails.put_if_large(resources, read.kept.content)
    is_read_later = any(each.review is not None or each.report_domain for each in read.origin.destinations)
    if blob and not is_read_later:
        read = replace(read, kept=raw_mails.Cut(b""))
    trace_id = "" if resources.tracing is None else traces.new_trace()
    return AcceptedMail(
        read,
        config.base_url,
        now,
        blob,
        about,
        envelope,
        junk_action=config.junk,
        trace_id=trace_id,
        awaits_scan=is_scanned and config.clamd_wait > 0,
    )


def envelope_of(kept: raw_mails.Cut, trace_bytes: int) -> bytes | None:
    """Return the IMAP envelope. None if it is made from the whole email on request."""
    head = raw_mails.head_of(kept, trace_bytes)
    return None if head is None else imap_values.envelope_of(head)


def read_mail(arrival: Arrival, is_checked: bool = True) -> ReadMail:
    """Reads an email; raises TooManyHops and nothing else.

    A reader of meaning runs inside `analysis.run`: if it raises, the email goes on without its answer and
    `failed` names it. If anything else raises, the email is read with fewer readers, at last with none.
    `is_checked` is False for old mail: its sender is not judged, and it cannot be handed over twice.
    """
    readers = Analysis()
    try:
        return _read(arrival, is_checked, readers)
    except TooManyHops:
        raise
    except Exception as error:
        readers.record_failure("email", error)
    return read_simply(arrival, parse_mail(arrival.raw), readers.failed)


def _read(arrival: Arrival, is_checked: bool, readers: Analysis) -> ReadMail:
    mail, origin, run = parse_mail(arrival.raw), arrival.origin, readers.run
    if mail.received_count > MAX_HOPS:
        raise TooManyHops
    page = run("html", NO_PAGE, lambda: read_page(mail.body_html))
    shown = mail.body_text or page.text
    body_text = run("text", shown, lambda: text.visible(shown))[:BODY_MAX_CHARACTERS]
    html = mail.body_html[:BODY_MAX_CHARACTERS]
    files = tuple(_describe(position, file) for position, file in enumerate(mail.attachments))
    is_doubtful = is_checked and run("peer", True, lambda: needs_sender_checks(mail, origin.peer_ip))
    calendar = run("calendar", None, lambda: read_appointment(mail))
    has_unread = any(map(is_unread, files)) or (is_checked and calendar is not None)
    needs_examination = is_doubtful or has_unread
    is_left_to_policy = (
        is_doubtful and not has_unread and run("policy", False, lambda: awaits_policy(mail, origin.peer_ip))
    )
    said = kind_signs.to_passage(mail, shown)
    subject_and_text = f"{mail.subject}\n\n{body_text}"
    report = run("report", None, lambda: _report(arrival, mail))
    returned = run("bounce", None, lambda: read_returned(arrival.raw) if _is_returned(arrival) else None)
    no_codes: list[str] = []
    no_links: list[links.LinkDetail] = []
    found_codes = run("codes", no_codes, lambda: _codes(said, subject_and_text))
    link_details = run("links", no_links, lambda: _links(mail, body_text, page))
    new_words = run("reply", body_text, lambda: reply.reply_text(body_text, mail.subject))
    body = run(
        "body signs",
        NO_BODY_SIGNS,
        lambda: kind_signs.body_signs(mail, said, body_text, new_words, found_codes, link_details),
    )
    reports = [each for each in (report, returned) if each is not None]
    kind = run("category", _unknown_kind(mail), lambda: _kind(mail, origin, body, reports))
    inside = screening.INSIDE if origin.peer_ip == "" else "none"
    findings = (
        None
        if needs_examination and not is_left_to_policy
        else run(
            "signals", screening.NOT_EXAMINED, lambda: screening.of_text(mail, shown, page, inside, said)
        )
    )
    counts_once = is_checked and (mail.message_id != "" or arrival.counts_once)
    return ReadMail(
        origin=origin,
        mail=replace(mail, body_text=body_text, attachments=()),
        reply=_reply(body_text, new_words),
        codes=found_codes,
        link_details=link_details,
        attachments=files,
        verdicts=run("peer", NOT_JUDGED, lambda: unchecked(mail, origin.peer_ip)),
        content_hash=content_hash(arrival) if counts_once else "",
        needs_examination=needs_examination,
        report=report,
        returned=returned,
        kind=kind,
        findings=findings,
        calendar=calendar,
        kept=raw_mails.cut(origin.trace + arrival.raw, body_text, html),
        size_bytes=len(origin.trace) + len(arrival.raw),
        own_marks=run("letter", (), lambda: own_emails.find_marks(arrival.raw)),
        junk_words=0.0
        if findings is None or origin.peer_ip == "" or not is_checked
        else run("junk", 0.0, lambda: words.score(arrival.raw, mail, page)),
        awaits_policy=is_left_to_policy,
        failed=tuple(readers.failed),
        values=run("values", (), lambda: value_keys(mail, body_text, new_words, page, found_codes)),
    )


def read_simply(arrival: Arrival, mail: ParsedMail, failed: Sequence[str]) -> ReadMail:
    """Returns an email with what the parser found, without any reader of meaning.

    The verdict is `suspicious`, since no rule has looked at it, and nobody answers it automatically.
    """
    body_text = mail.body_text[:BODY_MAX_CHARACTERS]
    return ReadMail(
        origin=arrival.origin,
        mail=replace(mail, body_text=body_text, attachments=()),
        reply=len(body_text),
        codes=[],
        link_details=[],
        attachments=tuple(_describe(position, file) for position, file in enumerate(mail.attachments)),
        verdicts=Analysis().run("peer", NOT_JUDGED, lambda: unchecked(mail, arrival.origin.peer_ip)),
        content_hash=content_hash(arrival) if mail.message_id or arrival.counts_once else "",
        needs_examination=True,
        report=None,
        returned=None,
        kind=_unknown_kind(mail),
        findings=None,
        calendar=None,
        kept=raw_mails.Cut(arrival.origin.trace + arrival.raw),
        size_bytes=len(arrival.origin.trace) + len(arrival.raw),
        own_marks=Analysis().run("letter", (), lambda: own_emails.find_marks(arrival.raw)),
        failed=tuple(failed),
    )


def read_bytes_alone(arrival: Arrival, failed: Sequence[str]) -> ReadMail:
    """Returns an email that no reader may look at: its header is unknown, its text is its body as it came."""
    read = read_simply(arrival, unread(arrival.raw, UNREAD), failed)
    return replace(read, needs_examination=False, findings=screening.NOT_EXAMINED)


def simpler(read: ReadMail) -> Iterator[ReadMail]:
    """Yields the email with less and less of it read, for one that cannot be stored as it was read."""
    content = raw_mails.restore(read.kept, read.mail.body_text, read.mail.body_html)
    arrival = Arrival(read.origin, content[len(read.origin.trace) :], bool(read.content_hash))
    failed = (*read.failed, "storing")
    yield read_simply(arrival, parse_mail(arrival.raw), failed)
    yield read_bytes_alone(arrival, failed)


def _unknown_kind(mail: ParsedMail) -> Kind:
    return Kind("automated" if mail.automated else "personal", auto_replyable=False)


def _kind(mail: ParsedMail, origin: Origin, body: BodySigns, reports: Sequence[Report]) -> Kind:
    return categorize(
        mail.signs,
        from_address=mail.from_address,
        mail_from=origin.mail_from,
        report_type=mail.report_type or ("unnamed" if reports else ""),
        is_bounce=any(report.kind in FAILURES for report in reports),
        body=body,
    )


def _codes(said: "Passage", subject_and_text: str) -> list[str]:
    return list(codes.codes(subject_and_text, kind_signs.cues(said, subject_and_text)))


def _links(mail: ParsedMail, body_text: str, page: HtmlPage) -> list[links.LinkDetail]:
    return links.link_details(body_text, page, links.unsubscribe_targets(mail.list_unsubscribe))


def content_hash(arrival: Arrival) -> str:
    """Return the hash of sender and content: the same for two handovers of one email.

    It begins with the email's date: emails of one time are near each other in the index, so few pages change.
    """
    hashed = hashlib.sha256(arrival.origin.mail_from.encode(errors="surrogateescape") + b"\0")
    hashed.update(arrival.raw)
    return f"{_second(arrival.raw):010x}{hashed.hexdigest()[:HASH_DIGITS]}"


def _second(raw: bytes) -> int:
    """Return the second of its date, ignoring the zone; 0 without a readable one."""
    found = DATE.search(b"\n" + raw[:DATE_WITHIN_BYTES])
    parts = _parts_of_date(found[1].decode("ascii", "replace")) if found else None
    if parts is None or not FIRST_YEAR <= parts[0] <= LAST_YEAR:
        return 0
    year, month, day, hour, minute, second = parts
    minutes = ((((year - FIRST_YEAR) * 13 + month) * 32 + day) * 25 + hour) * 61 + minute
    return (minutes * 62 + second) & LAST_SECOND


def _parts_of_date(written: str) -> tuple[int, int, int, int, int, int] | None:
    """Return the numbers from year to second."""
    usual = USUAL_DATE.fullmatch(written)
    if usual is None or usual[2] not in MONTHS:
        try:
            parts = parsedate(written)
        except Exception:  # it promises None, and raises on some dates
            return None
        return None if parts is None else parts[:6]
    day, _, year, hour, minute, second = usual.groups()
    return int(year), MONTHS[usual[2]], int(day), int(hour), int(minute), int(second)


def _reply(body_text: str, new_words: str) -> str | int:
    """Return the new words, or only their length if the text begins with them, which saves a copy."""
    return len(new_words) if body_text.startswith(new_words) else new_words


def _report(arrival: Arrival, mail: ParsedMail) -> Report | None:
    mail_from = arrival.origin.mail_from
    return read_report(arrival.raw, mail_from) if may_be_report(mail, mail_from) else None


def _is_returned(arrival: Arrival) -> bool:
    """Return whether it came to the signed return path of an email that was sent."""
    return any(destination.bounce_path is not None for destination in arrival.origin.destinations)


def _describe(position: int, file: ParsedAttachment) -> Attachment:
    method = "skipped_too_large" if len(file.content) > MAX_CONTENT_BYTES else None
    return Attachment(
        file.filename,
        position,
        file.content_type,
        len(file.content),
        method,
        filename_raw=file.filename_raw or None,
    )


def is_unread(file: Attachment) -> bool:
    return file.extraction_method is None
