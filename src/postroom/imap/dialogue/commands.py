"""Parses the text of a command into a request."""

from collections.abc import Callable

from postroom.imap.dialogue import fetch_items, search_keys
from postroom.imap.dialogue.cursor import BadCommand, CommandCursor
from postroom.imap.dialogue.requests import (
    AppendMail,
    AskStatus,
    Authenticate,
    CopyMails,
    CreateFolder,
    DeleteFolder,
    EnableExtensions,
    ExpungeMails,
    ListFolders,
    LogIn,
    NumberSet,
    PlainCommand,
    RenameFolder,
    Request,
    SelectFolder,
    StoreFlags,
    UnselectFolder,
)

PLAIN = {"CAPABILITY", "NOOP", "CHECK", "NAMESPACE", "LOGOUT", "STARTTLS", "IDLE"}
# HIGHESTMODSEQ: RFC 7162 section 3.1.2, SIZE: RFC 8438, DELETED: RFC 9051 section 6.3.11.
STATUS_ITEMS = {"MESSAGES", "RECENT", "UIDNEXT", "UIDVALIDITY", "UNSEEN", "HIGHESTMODSEQ", "SIZE", "DELETED"}
# In which state a command may come (RFC 3501 section 6).
ANY_STATE = {"CAPABILITY", "NOOP", "LOGOUT", "ID"}
BEFORE_LOGIN = {"STARTTLS", "LOGIN", "AUTHENTICATE"}
SELECTED = {"CHECK", "CLOSE", "UNSELECT", "EXPUNGE", "SEARCH", "FETCH", "STORE", "COPY", "MOVE", "UID"}


def read(name: str, cursor: CommandCursor, max_depth: int) -> Request:
    """Reads what follows the tag and the name of the command. Raises BadCommand."""
    if name in PLAIN:
        cursor.require_end()
        return PlainCommand(name)
    if name == "ID":  # whatever the client says of itself (RFC 2971)
        return PlainCommand(name)
    # CLOSE also expunges (RFC 3501 section 6.4.2), UNSELECT does not (RFC 3691).
    if name in ("CLOSE", "UNSELECT"):
        cursor.require_end()
        return UnselectFolder(expunges=name == "CLOSE")
    if name == "EXPUNGE":
        cursor.require_end()
        return ExpungeMails()
    reader = _READERS.get(name)
    if reader is None and name not in _ON_MAILS and name != "UID":
        raise BadCommand(f"there is no command {name[:40]}")
    cursor.require(b" ")
    request = reader(cursor) if reader is not None else _on_mails(name, cursor, max_depth)
    cursor.require_end()
    return request


def _on_mails(name: str, cursor: CommandCursor, max_depth: int) -> Request:
    by_uid = name == "UID"
    if by_uid:
        name = cursor.word()
        cursor.require(b" ")
    if name == "EXPUNGE" and by_uid:  # RFC 4315 section 2.1
        return ExpungeMails(cursor.number_set())
    if name == "SEARCH":
        return search_keys.read(cursor, by_uid, max_depth)
    if name not in _ON_MAILS:
        raise BadCommand(f"there is no command UID {name[:40]}")
    which = cursor.number_set()
    cursor.require(b" ")
    if name == "FETCH":
        return fetch_items.read(cursor, which, by_uid)
    if name == "STORE":
        return _store(cursor, which, by_uid)
    return CopyMails(which, by_uid, cursor.folder(), moves=name == "MOVE")


def _store(cursor: CommandCursor, which: NumberSet, by_uid: bool) -> StoreFlags:
    unchanged_since = None
    if cursor.take(b"(UNCHANGEDSINCE "):  # RFC 7162 section 3.1.3
        unchanged_since = cursor.number()
        cursor.require(b") ")
    mode = "+" if cursor.take(b"+") else "-" if cursor.take(b"-") else ""
    cursor.require(b"FLAGS")
    is_silent = cursor.take(b".SILENT")
    cursor.require(b" ")
    return StoreFlags(which, by_uid, mode, cursor.flags(), is_silent, unchanged_since)


def _login(cursor: CommandCursor) -> LogIn:
    name = cursor.text()
    cursor.require(b" ")
    return LogIn(name, cursor.text())


def _authenticate(cursor: CommandCursor) -> Authenticate:
    """Read AUTHENTICATE. The first answer may come with it; "=" is an empty one (RFC 4959, 3)."""
    mechanism = cursor.word()
    if not cursor.take(b" "):
        return Authenticate(mechanism)
    return Authenticate(mechanism, b"" if cursor.take(b"=") else cursor.astring())


def _select(cursor: CommandCursor, is_read_only: bool) -> SelectFolder:
    folder = cursor.folder()
    wants_modseq = False
    if cursor.take(b" "):
        words = cursor.words_in_brackets()
        if words != ("CONDSTORE",):
            raise BadCommand("only CONDSTORE may be asked for")
        wants_modseq = True
    return SelectFolder(folder, is_read_only, wants_modseq)


def _list(cursor: CommandCursor, command: str) -> ListFolders:
    """Read LIST with several patterns (RFC 5258), SPECIAL-USE (RFC 6154, 2) and RETURN STATUS (RFC 5819)."""
    only_special = False
    if command == "LIST" and cursor.take(b"("):
        while not cursor.take(b")"):
            only_special = cursor.flag().upper() == "SPECIAL-USE" or only_special
            cursor.take(b" ")
        cursor.require(b" ")
    reference = cursor.folder()
    cursor.require(b" ")
    patterns = _patterns(cursor)
    status: tuple[str, ...] = ()
    if cursor.take(b" RETURN ("):
        while not cursor.take(b")"):
            if cursor.take(b"STATUS "):
                status = _status_items(cursor)
            else:
                cursor.flag()
            cursor.take(b" ")
    return ListFolders(command, reference, patterns, only_special, status)


def _patterns(cursor: CommandCursor) -> tuple[str, ...]:
    return tuple(cursor.in_brackets(cursor.pattern)) if cursor.stands_at(b"(") else (cursor.pattern(),)


def _status(cursor: CommandCursor) -> AskStatus:
    folder = cursor.folder()
    cursor.require(b" ")
    return AskStatus(folder, _status_items(cursor))


def _status_items(cursor: CommandCursor) -> tuple[str, ...]:
    items = cursor.words_in_brackets()
    if not items or not set(items) <= STATUS_ITEMS:
        raise BadCommand(f"STATUS takes {', '.join(sorted(STATUS_ITEMS))}")
    return items


def _rename(cursor: CommandCursor) -> RenameFolder:
    folder = cursor.folder()
    cursor.require(b" ")
    return RenameFolder(folder, cursor.folder())


def _create(cursor: CommandCursor) -> CreateFolder:
    folder = cursor.folder()
    if cursor.take(b" ("):  # RFC 6154 section 3
        raise BadCommand("special-use folders cannot be created")
    return CreateFolder(folder)


def _append(cursor: CommandCursor) -> AppendMail:
    folder = cursor.folder()
    cursor.require(b" ")
    flags: frozenset[str] = frozenset()
    at = None
    if cursor.stands_at(b"("):
        flags = cursor.flags()
        cursor.require(b" ")
    if cursor.stands_at(b'"'):
        at = search_keys.moment(cursor.bytes_string().decode("ascii", "replace"))
        cursor.require(b" ")
    cursor.require_mail()
    return AppendMail(folder, flags, at)


def _enable(cursor: CommandCursor) -> EnableExtensions:
    return EnableExtensions(tuple(cursor.several(cursor.word)))


def _subscription(cursor: CommandCursor) -> PlainCommand:
    """Read SUBSCRIBE. Every folder counts as subscribed."""
    cursor.folder()
    return PlainCommand("SUBSCRIBE")


_ON_MAILS = {"SEARCH", "FETCH", "STORE", "COPY", "MOVE"}
_READERS: dict[str, Callable[[CommandCursor], Request]] = {
    "LOGIN": _login,
    "AUTHENTICATE": _authenticate,
    "SELECT": lambda cursor: _select(cursor, is_read_only=False),
    "EXAMINE": lambda cursor: _select(cursor, is_read_only=True),
    "LIST": lambda cursor: _list(cursor, "LIST"),
    "LSUB": lambda cursor: _list(cursor, "LSUB"),
    "STATUS": _status,
    "CREATE": _create,
    "DELETE": lambda cursor: DeleteFolder(cursor.folder()),
    "RENAME": _rename,
    "SUBSCRIBE": _subscription,
    "UNSUBSCRIBE": _subscription,
    "APPEND": _append,
    "ENABLE": _enable,
}
