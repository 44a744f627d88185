"""Imports old mail into an inbox, with its threads and dates: parsed in parallel, stored in batches.

It records no event and calls no webhook; the running server indexes it afterwards. Anyone with a key could
have written it: it is marked as imported, makes nobody known and joins no thread of received mail.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from postroom import limits
from postroom.accounts.people import own_emails
from postroom.clock import SECOND, from_iso
from postroom.errors import NotFound
from postroom.inward import deposit, scanning, screening
from postroom.inward.examine import Extractor, look_for_signals, read_files
from postroom.inward.into_thread import ThreadMatch
from postroom.inward.junk.waiting import NONE_WAITS
from postroom.inward.mails import (
    AcceptedMail,
    AddressedMail,
    Arrival,
    Destination,
    Origin,
    ReadMail,
    StoredCopy,
)
from postroom.inward.receive import TooManyHops, is_unread, read_mail
from postroom.inward.screening import Screening
from postroom.mailbox import correspondents, documents, inboxes, labels, messages, raw_mails, threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document, Verdicts
from postroom.mailbox.folders import uid_map
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND, SENT
from postroom.mailbox.search import indexing
from postroom.processes import pools
from postroom.processes.analysis import Analysis
from postroom.processes.pools import Pool, ProcessPool
from postroom.resources import Resources
from postroom.storage.blobs import DamagedBlob
from postroom.storage.database import Tx, one_of
from postroom.transfer.sources import OldMail
from postroom_mail.files.extraction import Extraction
from postroom_mail.mime.address import mailbox_of
from postroom_mail.mime.parse import parse_mail

T = TypeVar("T")

ANOTHER_SERVER = "127.0.0.1"  # in place of the peer, which gave the mail to another server long ago
UNKNOWN_SENDER = "unknown@invalid"
NOT_JUDGED = "none"
BATCHES_AHEAD = 2  # so that parsers never wait for the files of a batch
READ_AT_ONCE = 25  # by one process
FILES_AT_ONCE = 2  # as many as processes read them
ORIGINALS_COMPARED = 5
NOT_ASKED_AGAIN = 30 * SECOND  # clamd, after it gave no answer


class LabelledMail(Struct, frozen=True):
    mail: AcceptedMail
    labels: tuple[str, ...]


class PatientExtractor:
    """Files wait here for their turn: waiting in the pool would count as time for the file."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor, self._turns = extractor, asyncio.Semaphore(FILES_AT_ONCE)

    async def extract(
        self, content_type: str, filename: str, content: bytes, deadline_seconds: float
    ) -> Extraction:
        async with self._turns:
            return await self._extractor.extract(content_type, filename, content, deadline_seconds)


async def import_all(
    resources: Resources,
    pool: Pool | ProcessPool,
    extractor: Extractor,
    inbox: Inbox,
    batches: AsyncIterator[list[OldMail]],
    report: Callable[[int], None],
) -> int:
    """Returns how many are new. While a batch is stored, the next ones are parsed."""
    count, patient = 0, PatientExtractor(extractor)
    waiting: deque[tuple[int, asyncio.Task[list[LabelledMail]]]] = deque()
    async for batch in batches:
        reading = asyncio.create_task(read_batch(resources, pool, patient, inbox, batch))
        waiting.append((len(batch), reading))
        if len(waiting) > BATCHES_AHEAD:
            count += await _finish(resources, inbox, *waiting.popleft(), report)
    for size, reading in waiting:
        count += await _finish(resources, inbox, size, reading, report)
    return count


async def _finish(
    resources: Resources,
    inbox: Inbox,
    size: int,
    reading: "asyncio.Task[list[LabelledMail]]",
    report: Callable[[int], None],
) -> int:
    count = await store_batch(resources, inbox, await reading)
    report(size)
    return count


async def read_batch(
    resources: Resources,
    pool: Pool | ProcessPool,
    extractor: Extractor,
    inbox: Inbox,
    mails: Sequence[OldMail],
) -> list[LabelledMail]:
    """Read a batch, without emails that no server would accept."""
    fitting = [mail for mail in mails if len(mail.raw) <= limits.EMAIL_BYTES]
    parts = [fitting[start : start + READ_AT_ONCE] for start in range(0, len(fitting), READ_AT_ONCE)]
    read = await asyncio.gather(*(pool.run(read_all, inbox.id, part) for part in parts))
    pairs = zip(fitting, (found for part in read for found in part), strict=True)
    both = [(old, found) for old, found in pairs if found is not None]
    accepted = await asyncio.gather(
        *(_accept(resources, pool, extractor, inbox, old, found) for old, found in both)
    )
    return [LabelledMail(mail, old.labels) for mail, (old, _) in zip(accepted, both, strict=True)]


async def store_batch(resources: Resources, inbox: Inbox, mails: Sequence[LabelledMail]) -> int:
    """Store a batch durably. Return how many are new to the inbox."""
    are_new = await resources.db.write(store_all, mails, inbox)
    for each, is_new in zip(mails, are_new, strict=True):
        if not is_new:
            await raw_mails.remove_blob(resources, each.mail.blob)
    return sum(are_new)


async def import_new(
    resources: Resources,
    extractor: Extractor,
    inbox: Inbox,
    raw: bytes,
    at: int,
    then: Callable[[Tx, Document], T],
) -> T:
    """Stores an email from a mail client, always as a new message. `then` runs in its transaction."""
    old = OldMail(raw, at, "")
    read = await pools.READING.run(_read, inbox.id, old)
    mail = await _accept(resources, pools.READING, extractor, inbox, old, read)
    mail = structs.replace(mail, original=await find_original(resources, inbox, raw, read.mail.message_id))

    def work(tx: Tx) -> T:
        inboxes.lock(tx, inbox.id)
        (copy,) = _store_part(tx, inbox, deposit.to_each_inbox(mail))
        return then(tx, copy.document)

    try:
        return await resources.db.write(work)
    except BaseException:
        await raw_mails.remove_blob(resources, mail.blob)
        raise


async def find_original(
    resources: Resources, inbox: Inbox, raw: bytes, rfc_message_id: str
) -> Document | None:
    """Return the message that this inbox received with the very same bytes, if a client stores it again.

    Blocked mail does not count: nobody let it in.
    """
    for message_id in await resources.db.read(_list_received, inbox.id, rfc_message_id, len(raw)):
        try:
            came = await raw_mails.read(resources, message_id, with_trace=True)
        except (NotFound, DamagedBlob):
            continue
        message = await resources.db.read(messages.find, message_id) if came.endswith(raw) else None
        if message is not None and not message.is_blocked:
            return documents.decode(message.document)
    return None


def _list_received(tx: Tx, inbox_id: str, rfc_message_id: str, size_bytes: int) -> list[str]:
    """List the received messages of this size, with or without our trace field."""
    rows = tx.all(
        "select id from messages join raw_mails on message_id = id where inbox_id = :inbox_id"
        " and rfc_message_id = :rfc_message_id and direction = 'inbound' and is_imported = 0"
        " and (size_bytes = :size or size_bytes - trace_bytes = :size) order by id limit :most",
        inbox_id=inbox_id,
        rfc_message_id=rfc_message_id,
        size=size_bytes,
        most=ORIGINALS_COMPARED,
    )
    return [row["id"] for row in rows] if rfc_message_id else []


def read_all(inbox_id: str, mails: Sequence[OldMail]) -> list[ReadMail | None]:
    """Runs in another process: parsing is most of the work. None for what no server would accept."""
    return [_read_if_accepted(inbox_id, mail) for mail in mails]


def _read_if_accepted(inbox_id: str, old: OldMail) -> ReadMail | None:
    try:
        return _read(inbox_id, old)
    except TooManyHops:
        return None


def _read(inbox_id: str, old: OldMail) -> ReadMail:
    mail_from = old.mail_from or UNKNOWN_SENDER
    arrival = Arrival(Origin((Destination(inbox_id),), b"", ANOTHER_SERVER, "", mail_from), old.raw)
    found = read_mail(arrival, is_checked=False)
    findings, readers = found.findings, Analysis()
    if findings is None and not any(map(is_unread, found.attachments)):
        findings = look_for_signals(parse_mail(old.raw), found.attachments, NOT_JUDGED, (), readers)
    return structs.replace(
        found,
        failed=(*found.failed, *readers.failed),
        needs_examination=False,
        verdicts=Verdicts(NOT_JUDGED, NOT_JUDGED, NOT_JUDGED, found.verdicts.domain),
        findings=findings,
        report=None,
        returned=None,
    )


async def _accept(
    resources: Resources,
    pool: Pool | ProcessPool,
    extractor: Extractor,
    inbox: Inbox,
    old: OldMail,
    found: ReadMail,
) -> AcceptedMail:
    if any(map(is_unread, found.attachments)):
        readers = Analysis()
        files = await read_files(extractor, parse_mail(old.raw), list(found.attachments), readers)
        known = await resources.db.read(
            correspondents.list_trusted, inbox.id, screening.name_of(found.mail.from_addr)
        )
        findings, failed = await pool.run(_screen_with_files, old.raw, files, known)
        failed = (*found.failed, *readers.failed, *failed)
        found = structs.replace(found, attachments=tuple(files), findings=findings, failed=failed)
    found = await _scan(resources, old, found)
    blob = await raw_mails.put_if_large(resources, found.kept.content)
    return AcceptedMail(found, resources.config.base_url, old.at, blob, is_filed=True)


async def _scan(resources: Resources, old: OldMail, found: ReadMail) -> ReadMail:
    """Scan, unless clamd is away: an import does not wait for it, nor ask it again for each email."""
    fault = resources.services.found.get(scanning.CLAMD)
    if not resources.config.clamd or (fault and resources.now() - fault.seen_at < NOT_ASKED_AGAIN):
        return found
    scan = await scanning.scan(
        resources, old.raw, await pools.READING.run(parse_mail, old.raw), accepted_at=0
    )
    files = scanning.with_scan(found.attachments, scan)
    findings = scanning.with_names(found.findings or screening.NOT_EXAMINED, scan.names)
    return structs.replace(found, attachments=tuple(files), findings=findings)


def _screen_with_files(
    raw: bytes, files: Sequence[Attachment], known: Sequence[str]
) -> tuple[Screening, tuple[str, ...]]:
    """Screen an email with its files, and name the readers that failed. May run in another process."""
    readers = Analysis()
    return look_for_signals(parse_mail(raw), files, NOT_JUDGED, known, readers), tuple(readers.failed)


def store_all(tx: Tx, mails: Sequence[LabelledMail], inbox: Inbox) -> list[bool]:
    """Return which were new. Locks the inbox first, in the order that all storing of mail uses."""
    inboxes.lock(tx, inbox.id)
    are_new = _find_new(tx, inbox, [each.mail for each in mails])
    addressed = [
        each
        for number, (labelled, is_new) in enumerate(zip(mails, are_new, strict=True))
        if is_new
        for each in deposit.to_each_inbox(labelled.mail, number)
    ]
    for part in unrelated_parts(addressed):
        for copy in _store_part(tx, inbox, part):
            given = mails[copy.number].labels
            moment = from_iso(copy.document.created_at)
            labels.add_to_new(tx, _place(copy).thread, copy.document.id, given, moment)
    return are_new


def _store_part(tx: Tx, inbox: Inbox, part: list[AddressedMail]) -> list[StoredCopy]:
    owners = deposit.count_mails(tx, part, NONE_WAITS)
    copies = deposit.store(tx, part, owners, NONE_WAITS)
    threads.mark_all_read(tx, inbox.id, [_place(copy).thread.id for copy in copies])
    for copy in copies:
        if mailbox_of(copy.read.mail.from_address) in inbox.mailboxes:
            _mark_as_sent(tx, inbox, copy.document)
    indexing.enqueue_all(tx, [copy.document.id for copy in copies])
    return copies


def _place(copy: StoredCopy) -> ThreadMatch:
    assert copy.place is not None, "no policy is asked about mail that is moved"
    return copy.place


def unrelated_parts(addressed: Sequence[AddressedMail]) -> list[list[AddressedMail]]:
    """Split into parts without related emails: each finds its thread in the database.

    An email is in the first part after all related ones before it, so there are few parts.
    """
    parts: list[list[AddressedMail]] = []
    next_part: dict[str, int] = {}
    for each in addressed:
        mail = each.read.mail
        named = {mail.message_id, *mail.in_reply_to, *mail.references} - {""}
        number = max((next_part.get(name, 0) for name in named), default=0)
        if number == len(parts):
            parts.append([])
        parts[number].append(each)
        next_part.update(dict.fromkeys(named, number + 1))
    return parts


def _find_new(tx: Tx, inbox: Inbox, mails: Sequence[AcceptedMail]) -> list[bool]:
    """Find the new ones by Message-ID; without one, by date and bytes. Of duplicates only the first is new.

    The server's own emails never are: agents must not read them.
    """
    known = known_ids(tx, inbox, [mail.read.mail.message_id for mail in mails])
    found = []
    for mail in mails:
        name = mail.read.mail.message_id or f"{mail.now} {_hash_of_accepted(mail)}"
        is_new = name not in known and (bool(mail.read.mail.message_id) or not _has(tx, inbox, mail))
        known.add(name)
        found.append(is_new and not own_emails.is_own(tx, mail.read.own_marks))
    return found


def known_ids(tx: Tx, inbox: Inbox, message_ids: Sequence[str]) -> set[str]:
    """Return those of these ids that its messages have."""
    asked = sorted(set(message_ids) - {""})
    if not asked:
        return set()
    is_wanted, wanted = one_of("rfc_message_id", asked)
    rows = tx.all(
        f"select rfc_message_id from messages where inbox_id = :inbox_id and {is_wanted}",
        inbox_id=inbox.id,
        **wanted,
    )
    return {row["rfc_message_id"] for row in rows}


def _has(tx: Tx, inbox: Inbox, mail: AcceptedMail) -> bool:
    rows = tx.all(
        "select id from messages join raw_mails on raw_mails.message_id = messages.id"
        " where inbox_id = :inbox_id and direction in ('inbound', 'outbound') and created_at = :at"
        " and size_bytes = :size",
        inbox_id=inbox.id,
        at=mail.now,
        size=mail.read.size_bytes,
    )
    stored = (raw_mails.get(tx, row["id"]) for row in rows)
    return any(_hash_of(raw.content, raw.blob) == _hash_of_accepted(mail) for raw in stored)


def _hash_of_accepted(mail: AcceptedMail) -> str:
    return _hash_of(mail.read.content, mail.blob)


def _hash_of(content: bytes | None, blob: str | None) -> str:
    """Return the SHA-256 of an email's bytes; the name of a blob begins with it."""
    return blob.partition("-")[0] if blob else hashlib.sha256(content or b"").hexdigest()


def _mark_as_sent(tx: Tx, inbox: Inbox, document: Document) -> None:
    """Mark email written by the inbox itself as sent."""
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
    threads.forget_digest(tx, document.thread_id)
    inboxes.count(tx, inbox.id, inbound=-1, outbound=1)
    uid_map.move(tx, inbox.id, document.id, uid_map.SENT)
