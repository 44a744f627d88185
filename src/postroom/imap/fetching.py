"""FETCH: flags, sizes and dates from rows; pieces of mails from their bytes, streamed if large."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace

from postroom.errors import ApiError
from postroom.imap import listing
from postroom.imap.answers import structure, written
from postroom.imap.answers.structure import BodyPart
from postroom.imap.dialogue.requests import FetchMails, MailSection
from postroom.imap.state import ImapState
from postroom.mailbox import raw_mails
from postroom.mailbox.folders import views
from postroom.mailbox.folders.flags import SEEN
from postroom.mailbox.folders.views import FolderMail
from postroom.mailbox.raw_mails import RawMail
from postroom.operations.folders import mails
from postroom.processes import pools

TOGETHER = 500
WITH_CONTENT_TOGETHER = 50
NEEDS_CONTENT = {"ENVELOPE", "BODY", "BODYSTRUCTURE"}
MAX_HEADER_BYTES = 1024 * 1024
_FIELD = re.compile(rb"^([!-9;-~]++)[ \t]*+:[^\n]*+\n?(?:[ \t][^\n]*+\n?)*+", re.MULTILINE)


async def fetch(client: ImapState, request: FetchMails) -> bytes:
    view = client.selected
    if not request.by_uid and not view.has_all(request.which):
        return b"BAD There is no message with such a number."
    client.wants_modseq = (
        client.wants_modseq or request.changed_since is not None or "MODSEQ" in request.items
    )
    uids = view.select(request.which, request.by_uid)
    needs_content = bool(request.sections) or not NEEDS_CONTENT.isdisjoint(request.items)
    step = WITH_CONTENT_TOGETHER if needs_content else TOGETHER
    has_gaps = False
    for start in range(0, len(uids), step):
        part = uids[start : start + step]
        has_gaps = not await _fetch_some(client, request, part, needs_content) or has_gaps
    await listing.tell_changes(client, may_expunge=request.by_uid, by_uid=request.by_uid)
    return b"NO [EXPUNGEISSUED] Some of them are gone." if has_gaps and not request.by_uid else b"OK Done."


async def _fetch_some(client: ImapState, request: FetchMails, uids: list[int], needs_content: bool) -> bool:
    """Whether all of them are there."""
    view, (_, inbox_id) = client.selected, client.who
    found = await client.resources.db.read(views.list_mails, inbox_id, view.folder, uids)
    wanted = set(uids)
    found = [mail for mail in found if mail.uid in wanted]
    if request.changed_since is not None:
        found = [mail for mail in found if mail.modseq > request.changed_since]
    newly_seen: frozenset[int] = frozenset()
    if request.marks_seen and not view.is_read_only:
        found, newly_seen = await _mark_seen(client, found)
    for mail in found:
        with_flags = mail.uid in newly_seen and "FLAGS" not in request.items
        if needs_content:
            await _write_with_content(client, request, mail, with_flags)
        else:
            number = view.number_of(mail.uid)
            client.output.write(
                b"* %d FETCH (%s)\r\n" % (number or 0, b" ".join(_words(request, mail, with_flags)))
            )
    await client.output.drain()
    return request.changed_since is not None or len(found) == len(uids)


async def _mark_seen(client: ImapState, found: list[FolderMail]) -> tuple[list[FolderMail], frozenset[int]]:
    """Whoever may only read leaves no trace."""
    caller, inbox_id = client.who
    unseen = [mail.uid for mail in found if SEEN not in mail.flags]
    if not unseen or caller.permissions.isdisjoint(("draft", "send")):
        return found, frozenset()
    db, now = client.resources.db, client.resources.now()
    folder = client.selected.folder
    stored = await db.write(
        mails.change_flags, caller, inbox_id, folder, unseen, "+", frozenset({SEEN}), None, now
    )
    after = {mail.uid: mail for mail in stored.mails}
    return [after.get(mail.uid, mail) for mail in found], frozenset(after)


def _words(request: FetchMails, mail: FolderMail, with_flags: bool) -> list[bytes]:
    words: list[bytes] = []
    for item in (*request.items, *(("FLAGS",) if with_flags else ())):
        match item:
            case "FLAGS":
                words.append(b"FLAGS " + written.flag_list(mail.flags))
            case "UID":
                words.append(b"UID %d" % mail.uid)
            case "INTERNALDATE":
                words.append(b"INTERNALDATE " + written.internal_date(mail.created_at))
            case "RFC822.SIZE":
                words.append(b"RFC822.SIZE %d" % mail.size_bytes)
            case "MODSEQ":
                words.append(b"MODSEQ (%d)" % mail.modseq)
    return words


async def _write_with_content(
    client: ImapState, request: FetchMails, mail: FolderMail, with_flags: bool
) -> None:
    """What cannot be read any more, as a damaged file, is left out: the rest of the answer is good."""
    number = client.selected.number_of(mail.uid) or 0
    words = _words(request, mail, with_flags)
    output = client.output
    try:
        raw = await client.resources.db.read(raw_mails.get, mail.message_id)
        content = StoredContent(client, mail, replace(raw, signature=b""))
        root = await content.structure() if _needs_structure(request) else None
    except ApiError:
        output.write(b"* %d FETCH (UID %d)\r\n" % (number, mail.uid))
        return
    if root is not None:
        words += _descriptions(request, root)
    output.write(b"* %d FETCH (%s" % (number, b" ".join(words)))
    is_first = not words
    for section in request.sections:
        output.write(b"" if is_first else b" ")
        is_first = False
        await _write_section(client, content, section, root)
    output.write(b")\r\n")
    await output.drain()


def _needs_structure(request: FetchMails) -> bool:
    return not NEEDS_CONTENT.isdisjoint(request.items) or any(
        section.path or section.kind for section in request.sections
    )


def _descriptions(request: FetchMails, root: BodyPart) -> list[bytes]:
    words = []
    for item in request.items:
        if item == "ENVELOPE":
            words.append(b"ENVELOPE " + written.envelope(root.headers))
        elif item in ("BODY", "BODYSTRUCTURE"):
            words.append(item.encode() + b" " + written.body_structure(root, item == "BODYSTRUCTURE"))
    return words


class StoredContent:
    """The bytes of a mail: those in a row at hand, those in a blob as a stream."""

    def __init__(self, client: ImapState, mail: FolderMail, raw: RawMail) -> None:
        self._client = client
        self._mail = mail
        self._raw = raw
        self.size_bytes = mail.size_bytes if raw.content is None else len(raw.content)

    async def structure(self) -> BodyPart:
        cache = self._client.structures
        if cache.message_id != self._mail.message_id or cache.root is None:
            cache.root = await self._scan()
            cache.message_id = self._mail.message_id
        return cache.root

    async def _scan(self) -> BodyPart:
        if self._raw.content is not None:
            return structure.scan([self._raw.content])
        assert self._raw.blob is not None
        return await pools.READING.run(_scan_blob, self._client.resources.blobs.stream, self._raw.blob)

    async def chunks(self, first: int, end: int) -> AsyncIterator[bytes]:
        if self._raw.content is not None:
            yield self._raw.content[first:end]
            return
        position = 0
        async for chunk in await raw_mails.stream(self._client.resources, self._raw):
            if position + len(chunk) > first and position < end:
                yield chunk[max(0, first - position) : end - position]
            position += len(chunk)
            if position >= end:
                return


def _scan_blob(stream: Callable[[str], Iterator[bytes]], blob: str) -> BodyPart:
    return structure.scan(stream(blob))


async def _write_section(
    client: ImapState, content: StoredContent, section: MailSection, root: BodyPart | None
) -> None:
    output = client.output
    found: tuple[int, int] | None = (0, content.size_bytes)
    if root is not None and (section.path or section.kind):
        found = structure.span(root, section.path, section.kind)
    if found is None:
        output.write(section.shown + b" NIL")
        return
    if section.kind.startswith("HEADER.FIELDS"):
        _write_string(client, section, await _chosen_fields(content, found, section))
        return
    first, end = found
    if section.first is not None:
        first, end = min(first + section.first, end), min(first + section.first + section.count, end)
    output.write(section.shown + b" {%d}\r\n" % (end - first))
    left = end - first
    async for chunk in content.chunks(first, end):
        output.write(chunk)
        left -= len(chunk)
        await output.drain()
    if left:  # the client was promised more bytes than there are
        raise BrokenAnswer


class BrokenAnswer(Exception):
    """A mail ended before its end: what was announced cannot be said any more."""


def _write_string(client: ImapState, section: MailSection, value: bytes) -> None:
    if section.first is not None:
        value = value[section.first : section.first + section.count]
    client.output.write(section.shown + b" {%d}\r\n%s" % (len(value), value))


async def _chosen_fields(content: StoredContent, found: tuple[int, int], section: MailSection) -> bytes:
    first, end = found
    block = b"".join([chunk async for chunk in content.chunks(first, min(end, first + MAX_HEADER_BYTES))])
    names = {name.lower().encode() for name in section.fields}
    is_wanted = section.kind == "HEADER.FIELDS"
    return b"".join(_fields(block, names, is_wanted)) + b"\r\n"


def _fields(block: bytes, names: set[bytes], is_wanted: bool) -> Iterable[bytes]:
    for each in _FIELD.finditer(block):
        if (each[1].lower() in names) == is_wanted:
            yield each[0] if each[0].endswith(b"\n") else each[0] + b"\r\n"
