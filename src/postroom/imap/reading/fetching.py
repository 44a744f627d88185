"""FETCH: flags, sizes and dates from rows; pieces of emails from their bytes, streamed if large."""

import asyncio
import re
from functools import lru_cache

from msgspec.structs import replace

from postroom.errors import ApiError
from postroom.imap import listing
from postroom.imap.dialogue.requests import FetchMails, MailSection
from postroom.imap.reading import describing
from postroom.imap.reading.content import StoredContent, measured
from postroom.imap.state import ImapState
from postroom.imap.view import batches
from postroom.mailbox import raw_mails
from postroom.mailbox.folders import views
from postroom.mailbox.folders.flags import RECENT, SEEN
from postroom.mailbox.folders.uid_map import DRAFTS
from postroom.mailbox.folders.views import FolderMail
from postroom.operations.folders import mails
from postroom_mail.mime import imap_sections, imap_values
from postroom_mail.mime.imap_sections import BodyPart

TOGETHER = 500
HEADS_TOGETHER = 250
WITH_CONTENT_TOGETHER = 50
MAX_HEADER_BYTES = 1024 * 1024
MOST_NAMES_OF_A_PATTERN = 30
DATED = {"INTERNALDATE", "RFC822.SIZE"}
DESCRIBED = {"ENVELOPE", "BODYSTRUCTURE"}
_VALUE = rb"[ \t]*+:[^\n]*+\n?(?:[ \t][^\n]*+\n?)*+"
_FIELD = re.compile(rb"^([!-9;-~]++)" + _VALUE, re.MULTILINE)


async def fetch(client: ImapState, request: FetchMails) -> bytes:
    view = client.selected
    if not request.by_uid and not view.has_all(request.which):
        return b"BAD There is no message with such a number."
    listing.want_modseq(client, request.changed_since is not None or "MODSEQ" in request.items)
    uids = view.select(request.which, request.by_uid)
    step = TOGETHER
    if _needs_content(request):
        step = HEADS_TOGETHER if _needs_heads_alone(request) else WITH_CONTENT_TOGETHER
    has_gaps = False
    for some in batches(uids, step):
        has_gaps = not await _fetch_some(client, request, some) or has_gaps
    await listing.write_changes(client, may_expunge=request.by_uid, by_uid=request.by_uid)
    # RFC 5530 section 3
    return b"NO [EXPUNGEISSUED] Some of them are gone." if has_gaps and not request.by_uid else b"OK Done."


def _needs_content(request: FetchMails) -> bool:
    return bool(request.sections) or "BODY" in request.items


def _needs_heads_alone(request: FetchMails) -> bool:
    """Return whether headers are enough, as for programs that list emails by their header fields."""
    return "BODY" not in request.items and all(
        section.kind.startswith("HEADER") and not section.path for section in request.sections
    )


async def _fetch_some(client: ImapState, request: FetchMails, uids: list[int]) -> bool:
    """Writes the answers. Returns whether none of the emails is missing."""
    found = await _list(client, request, uids)
    newly_seen: frozenset[int] = frozenset()
    if request.marks_seen and not client.selected.is_read_only:
        found, newly_seen = await _mark_seen(client, found)
    if "ENVELOPE" in request.items:
        found = await describing.with_envelopes(client, found)
    if "BODYSTRUCTURE" in request.items:
        found = await describing.with_structures(client, found)
    if (view := client.selected).recent:
        found = [
            replace(mail, flags=mail.flags | {RECENT}) if view.is_recent(mail.uid) else mail for mail in found
        ]
    for flags in {mail.flags for mail in found} if "FLAGS" in request.items or newly_seen else ():
        listing.name_keywords(client, flags)
    answers = [(mail, _words(request, mail, mail.uid in newly_seen)) for mail in found]
    if not _needs_content(request):
        client.output.write(b"".join(_line(client, mail, b" ".join(words)) for mail, words in answers))
    else:
        heads: dict[str, bytes] = {}
        if _needs_heads_alone(request):
            asked = [mail.message_id for mail in found]
            heads = await client.resources.db.read(raw_mails.heads, asked)
        lines: list[bytes] = []
        for mail, words in answers:
            if mail.message_id in heads:
                lines.append(_with_head(client, request, mail, words, heads[mail.message_id]))
                continue
            client.output.write(b"".join(lines))
            lines.clear()
            await _write_with_content(client, request, mail, words)
        client.output.write(b"".join(lines))
    await client.output.drain()
    return request.changed_since is not None or len(found) == len(uids)


async def _list(client: ImapState, request: FetchMails, uids: list[int]) -> list[FolderMail]:
    view, (_, inbox_id) = client.selected, client.who
    is_dated = bool(request.sections) or not DATED.isdisjoint(request.items)
    is_described = not DESCRIBED.isdisjoint(request.items)
    db = client.resources.db
    found = await db.read(views.list_mails, inbox_id, view.folder, uids, is_dated, is_described)
    if view.folder == DRAFTS and is_dated:
        found = [await measured(client, mail) for mail in found]
    since = request.changed_since or 0
    return [mail for mail in found if mail.modseq > since]


def _line(client: ImapState, mail: FolderMail, words: bytes) -> bytes:
    return b"* %d FETCH (%s)\r\n" % (client.selected.number_of(mail.uid) or 0, words)


async def _mark_seen(client: ImapState, found: list[FolderMail]) -> tuple[list[FolderMail], frozenset[int]]:
    """Mark the emails as seen, unless the key may only read."""
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
    marked = [
        replace(mail, flags=after[mail.uid].flags, modseq=after[mail.uid].modseq)
        if mail.uid in after
        else mail
        for mail in found
    ]
    return marked, frozenset(after)


def _words(request: FetchMails, mail: FolderMail, is_newly_seen: bool) -> list[bytes]:
    """Return the answer. An unreadable part, such as a damaged file, is left out."""
    words: list[bytes] = []
    for item in request.items:
        match item:
            case "FLAGS":
                words.append(b"FLAGS " + imap_values.flag_list(mail.flags))
            case "UID":
                words.append(b"UID %d" % mail.uid)
            case "INTERNALDATE":
                words.append(b"INTERNALDATE " + imap_values.internal_date(mail.created_at))
            case "RFC822.SIZE":
                words.append(b"RFC822.SIZE %d" % mail.size_bytes)
            case "MODSEQ":
                words.append(b"MODSEQ (%d)" % mail.modseq)
            case "ENVELOPE" if mail.envelope is not None:
                words.append(b"ENVELOPE " + mail.envelope)
            case "BODYSTRUCTURE" if mail.structure is not None:
                words.append(b"BODYSTRUCTURE " + mail.structure)
    if is_newly_seen and "FLAGS" not in request.items:
        words.append(b"FLAGS " + imap_values.flag_list(mail.flags))
    return words


def _with_head(
    client: ImapState, request: FetchMails, mail: FolderMail, words: list[bytes], head: bytes
) -> bytes:
    pieces = [_string(section, _chosen(section, head)) for section in request.sections]
    return _line(client, mail, b" ".join([*words, *pieces]))


def _chosen(section: MailSection, head: bytes) -> bytes:
    if section.kind == "HEADER":
        return head
    is_wanted = section.kind == "HEADER.FIELDS"
    if is_wanted and len(section.fields) <= MOST_NAMES_OF_A_PATTERN:
        chosen = b"".join(_pattern_of(section.fields).findall(head))
    else:
        names = {name.lower().encode() for name in section.fields}
        chosen = b"".join(
            each[0] for each in _FIELD.finditer(head) if (each[1].lower() in names) == is_wanted
        )
    # An email may end within its header.
    return chosen + (b"\r\n" if not chosen or chosen.endswith(b"\n") else b"\r\n\r\n")


@lru_cache(64)
def _pattern_of(names: tuple[str, ...]) -> re.Pattern[bytes]:
    """Matches these fields of a header, and skips other lines: faster than searching."""
    one_of_them = b"|".join(re.escape(name.encode()) for name in names)
    return re.compile(rb"((?:%s)%s)|[^\n]*+\n?" % (one_of_them, _VALUE), re.IGNORECASE)


async def _write_with_content(
    client: ImapState, request: FetchMails, mail: FolderMail, words: list[bytes]
) -> None:
    output = client.output
    try:
        content = await StoredContent.open(client, mail)
        root = await content.structure() if _needs_structure(request) else None
    except ApiError:
        output.write(_line(client, mail, b"UID %d" % mail.uid))
        return
    if root is not None and "BODY" in request.items:
        words = [*words, b"BODY " + imap_values.body_structure(root, is_extended=False)]
    output.write(b"* %d FETCH (%s" % (client.selected.number_of(mail.uid) or 0, b" ".join(words)))
    is_first = not words
    for section in request.sections:
        output.write(b"" if is_first else b" ")
        is_first = False
        await _write_section(client, content, section, root)
    output.write(b")\r\n")
    await output.drain()
    await asyncio.sleep(0)  # a client that reads fast must not keep others waiting


def _needs_structure(request: FetchMails) -> bool:
    return "BODY" in request.items or any(section.path or section.kind for section in request.sections)


async def _write_section(
    client: ImapState, content: StoredContent, section: MailSection, root: BodyPart | None
) -> None:
    output = client.output
    found: tuple[int, int] | None = (0, content.size_bytes)
    if root is not None and (section.path or section.kind):
        found = imap_sections.span(root, section.path, section.kind)
    if found is None:
        output.write(section.shown + b" NIL")
        return
    if section.kind.startswith("HEADER.FIELDS"):
        output.write(_string(section, await _chosen_fields(content, found, section)))
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
    """An email was shorter than announced: the answer cannot be completed."""


def _string(section: MailSection, value: bytes) -> bytes:
    if section.first is not None:
        value = value[section.first : section.first + section.count]
    return section.shown + b" {%d}\r\n%s" % (len(value), value)


async def _chosen_fields(content: StoredContent, found: tuple[int, int], section: MailSection) -> bytes:
    first, end = found
    block = b"".join([chunk async for chunk in content.chunks(first, min(end, first + MAX_HEADER_BYTES))])
    return _chosen(section, block)
