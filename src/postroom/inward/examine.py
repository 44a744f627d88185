"""Examines a stored message before its event: checks the sender, reads the files, records all at once."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from postroom import log
from postroom.accounts.people import own_emails
from postroom.accounts.rules import junk
from postroom.accounts.rules.junk import JunkRules
from postroom.clock import from_iso
from postroom.errors import is_passing
from postroom.events import event_log
from postroom.events.announce import announce, count_unannounced
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import NewEvent
from postroom.inward import admit, calendar_changes, colleagues, scanning, screening
from postroom.inward.genuine import is_genuine
from postroom.inward.held_values import keys_of_files
from postroom.inward.into_thread import Names, names_of
from postroom.inward.junk.evidence import JunkContent, find_evidence
from postroom.inward.junk.senders import JunkSender, find_sender_history
from postroom.inward.junk.weighing import Evidence, weigh
from postroom.inward.rules.apply import LetIn, apply_all
from postroom.inward.scanning import Postponed, Scan
from postroom.inward.screening import Screening
from postroom.inward.sender_checks import check_with_policy, needs_sender_checks
from postroom.mailbox import (
    attachments,
    correspondents,
    documents,
    holds,
    inboxes,
    messages,
    origins,
    raw_mails,
    threads,
)
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document, Verdicts
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.mailbox.origins import HeldValues
from postroom.mailbox.search import indexing
from postroom.processes import analysis, pools
from postroom.processes.analysis import Analysis
from postroom.queue import dmarc_results, leases
from postroom.queue.dmarc_results import DmarcResult
from postroom.queue.leases import WorkTable
from postroom.resources import Resources
from postroom.storage.database import Tx, item_from_row
from postroom_mail.authentication.lookup import Lookup
from postroom_mail.files.extraction import Extraction
from postroom_mail.html.page import NO_PAGE, HtmlPage, read_page
from postroom_mail.mime.address import normalize, parse_list
from postroom_mail.mime.parse import UNREAD, ParsedMail, parse_mail
from postroom_mail.reading.series import CalendarObjects

DEADLINE_SECONDS = 10.0
BELL = "examinations"
EXAMINATIONS = WorkTable("examinations", key="message_id")


class Examination(Struct, frozen=True):
    message_id: str
    peer_ip: str
    helo: str
    mail_from: str
    due_at: int


def add_all(tx: Tx, new: Iterable[Examination]) -> None:
    tx.many(
        "insert into examinations (message_id, peer_ip, helo, mail_from, due_at) values :rows",
        [
            (
                examination.message_id,
                examination.peer_ip,
                examination.helo,
                examination.mail_from,
                examination.due_at,
            )
            for examination in new
        ],
    )


def is_due(tx: Tx, now: int) -> bool:
    return leases.is_due(tx, EXAMINATIONS, now)


def claim_due(tx: Tx, running: Sequence[Examination], limit: int, now: int) -> list[Examination]:
    return [item_from_row(Examination, row) for row in leases.claim_due(tx, EXAMINATIONS, limit, now)]


def renew(tx: Tx, running: Sequence[Examination], now: int) -> None:
    leases.renew(tx, EXAMINATIONS, [examination.message_id for examination in running], now)


def is_waiting(tx: Tx, message_id: str) -> bool:
    return tx.one("select 1 as found from examinations where message_id = :id", id=message_id) is not None


def depth(tx: Tx, now: int, most: int) -> tuple[int, int]:
    """Return how many wait, counted up to `most`, and since when the first is due."""
    counted = tx.one(
        "select count(*) as waiting from (select 1 from examinations limit :most) as counted", most=most
    )
    oldest = tx.one("select min(due_at) as due_at from examinations")
    due_at = now if oldest is None or oldest["due_at"] is None else min(now, int(oldest["due_at"]))
    return int(counted["waiting"]) if counted else 0, due_at


def remove(tx: Tx, message_id: str) -> bool:
    """Return False if another node removed it first."""
    return leases.remove(tx, EXAMINATIONS, message_id)


class Extractor(Protocol):
    """Reads the text of a file within the deadline, in another process."""

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction: ...


class Examined(Struct, frozen=True):
    verdicts: Verdicts | None  # None: could not be found out
    attachments: list[Attachment]
    findings: Screening
    failed: Sequence[str] = ()  # the readers that raised
    calendar: CalendarObjects | None = None
    evidence: Evidence = Evidence(0.0)
    names: Names | None = None  # None: it was not read
    seen: DmarcResult | None = None  # what the domain of its sender is told
    values: tuple[str, ...] = ()  # of its files


class OpenedMail(Struct, frozen=True):
    """A stored email, its files, and what clamd said of them."""

    raw: bytes
    mail: ParsedMail
    files: list[Attachment]
    scan: Scan


def _not_examined(files: Sequence[Attachment], scan: Scan) -> Examined:
    findings = scanning.with_names(screening.NOT_EXAMINED, scan.names)
    return Examined(None, [_unreadable(file) for file in files], findings, ["examination"])


async def examine_message(
    resources: Resources, extractor: Extractor, lookup: Lookup, examination: Examination
) -> None:
    message = await resources.db.read(messages.find, examination.message_id)
    if message is None:
        await resources.db.write(remove, examination.message_id)
        return
    files = (await resources.db.read(attachments.list_of_messages, [message.id])).get(message.id, [])
    found = nothing = _not_examined(files, Scan())
    document = documents.decode(message.document)
    try:
        if document.parse_error != UNREAD:
            raw = await raw_mails.read(resources, message.id, with_trace=False)
            mail = await pools.READING.run(parse_mail, raw)
            scan = await scanning.scan(resources, raw, mail, from_iso(document.created_at))
            files = scanning.with_scan(files, scan)
            nothing = _not_examined(files, scan)  # what clamd found counts, whatever else fails
            opened = OpenedMail(raw, mail, files, scan)
            found = await find_out(resources, extractor, lookup, examination, message, opened)
    except Postponed:
        return  # its claim ends, and it is due again
    except Exception:
        log.get().exception("a message could not be examined", message=message.id)
        found = nothing
    base_url, now = resources.config.base_url, resources.now()
    try:
        bells = await resources.db.write(finish, message, found, resources.config.junk, base_url, now)
    except Exception as error:
        if is_passing(error):
            raise
        log.get().exception("an examination could not be stored", message=message.id)
        found = nothing  # else the message would wait for its event forever
        bells = await resources.db.write(finish, message, found, resources.config.junk, base_url, now)
    analysis.count(found.failed)
    resources.db.ring(*bells)


async def find_out(
    resources: Resources,
    extractor: Extractor,
    lookup: Lookup,
    examination: Examination,
    message: Message,
    opened: OpenedMail,
) -> Examined:
    raw, mail, readers = opened.raw, opened.mail, Analysis()
    is_doubtful = readers.run("peer", True, lambda: needs_sender_checks(mail, examination.peer_ip))
    is_checked = message.is_blocked or is_doubtful
    check = partial(check_with_policy, resources.config, raw, mail, examination, lookup, is_checked)
    judged, texts = await asyncio.gather(
        readers.wait_for("authentication", None, check),
        read_files(extractor, mail, opened.files, readers),
    )
    verdicts = None if judged is None else judged.verdicts
    name = screening.name_of(mail.from_addr)
    known = await resources.db.read(correspondents.list_trusted, message.inbox_id, name)
    own = await resources.db.read(colleagues.list_colleagues, message.inbox_id)
    dmarc = "temperror" if verdicts is None else verdicts.dmarc
    dmarc = dmarc if examination.peer_ip else screening.INSIDE
    page = await pools.READING.run(readers.run, "html", NO_PAGE, lambda: read_page(mail.body_html))
    findings = await pools.READING.run(look_for_signals, mail, texts, dmarc, known, readers, page, own)
    findings = scanning.with_names(findings, opened.scan.names)
    calendar = await pools.READING.run(readers.run, "calendar", None, lambda: calendar_changes.read(mail))
    evidence = await readers.wait_for(
        "junk",
        Evidence(0.0),
        partial(find_evidence, resources, message.inbox_id, JunkContent(raw, mail, page), examination),
    )
    seen = None if judged is None else judged.result
    held = await pools.READING.run(readers.run, "values", (), lambda: keys_of_files(mail, texts))
    return Examined(verdicts, texts, findings, readers.failed, calendar, evidence, names_of(mail), seen, held)


def look_for_signals(
    mail: ParsedMail,
    files: Sequence[Attachment],
    dmarc: str,
    known: Sequence[str],
    readers: Analysis,
    read: HtmlPage | None = None,
    own: Sequence[str] = (),
) -> Screening:
    page = read or readers.run("html", NO_PAGE, lambda: read_page(mail.body_html))
    shown = mail.body_text or page.text
    return readers.run(
        "signals",
        screening.NOT_EXAMINED,
        lambda: screening.of_mail(mail, shown, page, files, dmarc, known, colleagues=own),
    )


def sender_of(document: Document) -> str:
    """Return the sender in the normalized form used for comparing addresses."""
    senders = parse_list(document.from_addr)
    return normalize(senders[0].address) if senders else ""


async def read_files(
    extractor: Extractor, mail: ParsedMail, files: list[Attachment], readers: Analysis
) -> list[Attachment]:
    reading = (
        readers.wait_for("file", _unreadable(file), partial(_read_file, extractor, mail, file))
        for file in files
    )
    return list(await asyncio.gather(*reading))


def _unreadable(file: Attachment) -> Attachment:
    return structs.replace(file, extraction_method=file.extraction_method or "failed")


async def _read_file(extractor: Extractor, mail: ParsedMail, file: Attachment) -> Attachment:
    if file.extraction_method is not None:
        return file
    part = mail.attachments[file.position]
    found = await extractor.extract(part.content_type, part.filename, part.content, DEADLINE_SECONDS)
    return file.with_text(found.method, found.text)


def finish(tx: Tx, message: Message, found: Examined, junk_action: str, base_url: str, now: int) -> list[str]:
    """Stores texts, verdicts and event and removes the examination in one transaction, so it happens once."""
    inbox = inboxes.find(tx, message.inbox_id)
    if not remove(tx, message.id) or inbox is None:
        return []
    dmarc_results.add_all(tx, [found.seen] if found.seen else [], now)
    for file in found.attachments:
        attachments.set_text(tx, message.id, file)
    texts = tuple(file.parsed_text for file in found.attachments if file.parsed_text)
    own_emails.end_shown_links(tx, inbox.id, texts, now)
    origins.add_all(tx, [HeldValues(inbox.id, message.id, found.values)])
    found = with_calendar(tx, inbox, message, found)
    rules = junk.in_force(tx, [inbox.id], junk_action)[inbox.id]
    document = set_findings(tx, inbox, message, found, rules)
    indexing.enqueue_all(tx, [message.id])
    if message.is_blocked:
        calendar_changes.keep(tx, message.id, found.calendar)
        return admit.decide(tx, inbox, message, document, rules.action != junk.MARK, base_url, now)
    calendar_changes.apply(tx, inbox, document, found.calendar, now)
    if document.auth is not None and is_genuine(document):
        correspondents.add(tx, [(inbox.id, sender_of(document), True)], now)
        if document.auth.dmarc == "pass":
            correspondents.mark_verified(tx, inbox.id, sender_of(document), now)
        screening.record_name(tx, sender_of(document), document)
    ruled = apply_all(tx, [LetIn(inbox, document, found.attachments, message.created_at)], now)[0]
    news = NewEvent.of(inbox, MESSAGE_RECEIVED, ruled.document, found.attachments, now)
    if ruled.is_hidden:
        count_unannounced(tx, [news])
        return [event_log.bell(inbox.account_id)]
    return announce(tx, news, base_url)


def with_calendar(tx: Tx, inbox: Inbox, message: Message, found: Examined) -> Examined:
    """Remove the calendar of old mail that was imported, which changes no calendar."""
    if found.calendar is None or message.is_imported:
        return structs.replace(found, calendar=None)
    document = documents.decode(message.document)
    proven = structs.replace(document, auth=found.verdicts or document.auth)
    findings = calendar_changes.weigh(tx, inbox, proven, found.calendar, found.findings)
    return structs.replace(found, findings=findings)


def set_findings(tx: Tx, inbox: Inbox, message: Message, found: Examined, rules: JunkRules) -> Document:
    document = documents.decode(message.document)
    proven = structs.replace(
        document,
        auth=found.verdicts or document.auth,
        analysis="failed" if found.failed else document.analysis,
    )
    is_proven = proven.auth is not None and is_genuine(proven)
    sender = JunkSender(found.names, is_proven, message.created_at)
    history = find_sender_history(tx, inbox.scope, sender, found.evidence)
    weighed = weigh(found.evidence, proven.auth, history, rules)
    judged = structs.replace(screening.judged(proven, found.findings), junk=weighed)
    messages.set_document(tx, judged)
    if weighed.is_junk and is_proven:
        correspondents.find_junk(tx, inbox.id, sender_of(document))
    threads.record_verdict(tx, message.thread_id, judged.verdict)
    holds.raise_risk(tx, message.thread_id, judged.verdict)
    return judged
