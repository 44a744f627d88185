"""LIST, STATUS, SELECT, and notifying a client of changes in its folder."""

from postroom.accounts.permissions import WRITING
from postroom.imap.dialogue import names as wire_names
from postroom.imap.dialogue.requests import AskStatus, ListFolders, SelectFolder
from postroom.imap.state import ImapState
from postroom.imap.view import FolderView
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.folders.flags import RECENT, SYSTEM
from postroom.mailbox.folders.views import FolderState
from postroom.operations.folders import names
from postroom.resources import Tx
from postroom_mail.mime import imap_values

SPECIAL = {  # RFC 6154 section 2
    uid_map.SENT: "\\Sent",
    uid_map.DRAFTS: "\\Drafts",
    uid_map.JUNK: "\\Junk",
    uid_map.TRASH: "\\Trash",
}
MAX_PATTERN_LENGTH = 500  # wildcards cost pattern times name (RFC 9051 section 6.3.9)


async def list_folders(client: ImapState, request: ListFolders) -> bytes:
    _, inbox_id = client.who
    if request.patterns == ("",):  # asks for the delimiter alone (RFC 3501 section 6.3.8)
        client.output.write(f'* {request.command} (\\Noselect) "/" ""\r\n'.encode())
        return b"OK Done."
    folders = await client.resources.db.read(names.list_folders, inbox_id)
    patterns = [(request.reference + pattern).casefold()[:MAX_PATTERN_LENGTH] for pattern in request.patterns]
    for folder, name in folders.items():
        if request.only_special and folder not in SPECIAL:
            continue
        if any(is_meant(name.casefold(), pattern) for pattern in patterns):
            attributes = " ".join(["\\HasNoChildren", *filter(None, [SPECIAL.get(folder)])])
            shown = _shown(client, name)
            client.output.write(f'* {request.command} ({attributes}) "/" '.encode() + shown + b"\r\n")
            if request.status:
                await _write_status(client, folder, name, request.status)
    return b"OK Done."


def is_meant(name: str, pattern: str) -> bool:
    """Names hold no slash, so * and % mean the same (RFC 3501 section 6.3.8).

    Backtracking to the last of them is enough.
    """
    at, wild, resumed = 0, -1, 0
    place = 0
    while at < len(name):
        if place < len(pattern) and pattern[place] in "*%":
            wild, resumed = place, at
            place += 1
        elif place < len(pattern) and pattern[place] == name[at]:
            at, place = at + 1, place + 1
        elif wild >= 0:
            resumed += 1
            at, place = resumed, wild + 1
        else:
            return False
    return not pattern[place:].strip("*%")


def _shown(client: ImapState, name: str) -> bytes:
    return _utf8(name) if client.is_utf8 else imap_values.string(wire_names.encode(name))


def _utf8(name: str) -> bytes:
    return b'"' + name.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


async def ask_status(client: ImapState, request: AskStatus) -> bytes:
    _, inbox_id = client.who
    folder = await client.resources.db.read(names.require_folder, inbox_id, request.folder)
    await _write_status(client, folder, request.folder, request.items)
    return b"OK Done."


async def _write_status(client: ImapState, folder: str, name: str, items: tuple[str, ...]) -> None:
    _, inbox_id = client.who
    want_modseq(client, "HIGHESTMODSEQ" in items)
    state = await client.resources.db.read(views.state, inbox_id, folder, "SIZE" in items)
    values = {
        "MESSAGES": state.messages,
        "RECENT": state.recent,
        "UIDNEXT": state.next_uid,
        "UIDVALIDITY": state.uid_validity,
        "UNSEEN": state.unseen,
        "DELETED": state.deleted,
        "HIGHESTMODSEQ": state.modseq,
        "SIZE": state.size_bytes,
    }
    said = " ".join(f"{item} {values[item]}" for item in items)
    client.output.write(b"* STATUS " + _shown(client, name) + f" ({said})\r\n".encode())


def _look(tx: Tx, inbox_id: str, name: str) -> tuple[FolderState, FolderView, int | None]:
    """Return the state of the folder, the view of it, and the first unseen UID."""
    folder = names.require_folder(tx, inbox_id, name)
    state, uids = views.state(tx, inbox_id, folder), views.uids(tx, inbox_id, folder)
    view = FolderView(folder, False, uids, state.modseq, views.keywords(tx, inbox_id))
    return state, view, views.first_unseen(tx, inbox_id, folder)


async def select(client: ImapState, request: SelectFolder) -> bytes:
    """Write what RFC 3501 section 6.3.1 asks for, and HIGHESTMODSEQ (RFC 7162 section 3.1.2.1)."""
    client.view = None
    _, inbox_id = client.who
    state, view, first_unseen = await client.resources.db.read(_look, inbox_id, request.folder)
    view.is_read_only = request.is_read_only
    client.view = view
    await _take_recent(client)
    client.wants_modseq = client.wants_modseq or request.wants_modseq
    flags = " ".join([*SYSTEM, *sorted(view.keywords)])
    permanent = "" if request.is_read_only else f"{flags} \\*"
    lines = [
        f"* {len(view.uids)} EXISTS",
        f"* {view.recent_count} RECENT",
        f"* FLAGS ({flags})",
        f"* OK [PERMANENTFLAGS ({permanent})] These are kept.",
        f"* OK [UIDVALIDITY {state.uid_validity}] UIDs never change.",
        f"* OK [UIDNEXT {state.next_uid}] The next UID is at least this.",
        f"* OK [HIGHESTMODSEQ {state.modseq}] Changes are numbered.",
    ]
    if first_unseen is not None and (number := view.number_of(first_unseen)):
        lines.append(f"* OK [UNSEEN {number}] The first that was not seen.")
    client.output.write("\r\n".join(lines).encode() + b"\r\n")
    return b"OK [READ-ONLY] Done." if request.is_read_only else b"OK [READ-WRITE] Done."


async def _take_recent(client: ImapState) -> None:
    """Record what is recent to this session (RFC 3501 section 2.3.2).

    One that changes nothing leaves it to others as well (section 6.3.2).
    """
    view, (caller, inbox_id), db = client.selected, client.who, client.resources.db
    first, behind = await db.read(views.recent_span, inbox_id, view.folder)
    takes = not view.is_read_only and not caller.permissions.isdisjoint(WRITING)
    if takes and first < behind:
        first, behind = await db.write(views.take_recent, inbox_id, view.folder)
    if not takes:
        view.recent.clear()
    view.add_recent(first, behind)


async def write_changes(
    client: ImapState,
    may_expunge: bool = True,
    unreported: frozenset[int] = frozenset(),
    by_uid: bool = False,
) -> None:
    """Reports all changes since the last time, except flags of `unreported`, which the client knows already.

    Without `may_expunge` no number changes: RFC 3501 section 7.4.1 forbids it during FETCH, STORE and SEARCH.
    """
    view, (_, inbox_id) = client.selected, client.who
    compares = view.must_compare and may_expunge
    seen = await client.resources.db.read(
        views.look, inbox_id, view.folder, view.modseq, view.last_uid, len(view.uids), compares
    )
    if seen is None:
        return
    view.modseq = seen.modseq
    if seen.uids is not None and may_expunge:
        for number in view.drop(seen.uids):
            client.output.write(b"* %d EXPUNGE\r\n" % number)
    view.must_compare = not may_expunge and (view.must_compare or seen.uids is not None)
    new = [uid for uid, _, _ in seen.changed if uid > view.last_uid]
    if new:
        view.add(new)
        await _take_recent(client)
        client.output.write(b"* %d EXISTS\r\n* %d RECENT\r\n" % (len(view.uids), view.recent_count))
    reported = frozenset(new) | unreported
    for uid, flags, modseq in seen.changed:
        if uid not in reported:
            write_flags(client, uid, flags, modseq, by_uid)


def want_modseq(client: ImapState, is_wanted: bool) -> None:
    """Announce the highest MODSEQ at the first command that asks for one (RFC 7162, 3.1)."""
    if is_wanted and not client.wants_modseq:
        client.wants_modseq = True
        if client.view is not None:
            client.output.write(b"* OK [HIGHESTMODSEQ %d] Changes are numbered.\r\n" % client.view.modseq)


def name_keywords(client: ImapState, flags: frozenset[str]) -> None:
    """Names keywords before a message has them: a client knows those of FLAGS (RFC 3501 section 7.2.6)."""
    view = client.selected
    new = {flag for flag in flags if not flag.startswith("\\")} - view.keywords
    if new and len(view.keywords) < views.MOST_KEYWORDS_NAMED:
        view.keywords |= new
        named = " ".join([*SYSTEM, *sorted(view.keywords)])
        client.output.write(f"* FLAGS ({named})\r\n".encode())


def write_flags(client: ImapState, uid: int, flags: frozenset[str], modseq: int, with_uid: bool) -> None:
    number = client.selected.number_of(uid)
    if number is None:
        return
    name_keywords(client, flags)
    words = [b"FLAGS " + imap_values.flag_list(flags | {RECENT} if client.selected.is_recent(uid) else flags)]
    if with_uid or client.wants_modseq:
        words.append(b"UID %d" % uid)
    if client.wants_modseq:
        words.append(b"MODSEQ (%d)" % modseq)
    client.output.write(b"* %d FETCH (%s)\r\n" % (number, b" ".join(words)))
