"""The items of FETCH: FLAGS, ENVELOPE, BODY.PEEK[1.2.HEADER.FIELDS (TO CC)]<0.100> and so on."""

import re

from postroom.imap.dialogue.cursor import BadCommand, CommandCursor
from postroom.imap.dialogue.requests import FetchMails, MailSection, NumberSet

MAX_ITEMS = 50  # a client asks for a dozen
MACROS = {  # RFC 3501 section 6.4.5
    "ALL": ("FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE"),
    "FAST": ("FLAGS", "INTERNALDATE", "RFC822.SIZE"),
    "FULL": ("FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY"),
}
OLD_SECTIONS = {
    "RFC822": MailSection(shown=b"RFC822"),
    "RFC822.HEADER": MailSection(kind="HEADER", is_peek=True, shown=b"RFC822.HEADER"),
    "RFC822.TEXT": MailSection(kind="TEXT", shown=b"RFC822.TEXT"),
}
ITEMS = {"FLAGS", "UID", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY", "BODYSTRUCTURE", "MODSEQ"}
_ITEM = re.compile(rb"[A-Za-z0-9.]+")
_PATH = re.compile(rb"[1-9][0-9]{0,4}(?:\.[1-9][0-9]{0,4}){0,50}")
_KIND = re.compile(rb"HEADER\.FIELDS\.NOT|HEADER\.FIELDS|HEADER|TEXT|MIME", re.IGNORECASE)


def read(cursor: CommandCursor, which: NumberSet, by_uid: bool) -> FetchMails:
    items: list[str] = []
    sections: list[MailSection] = []

    def read_item() -> None:
        _item(cursor, items, sections)

    if cursor.stands_at(b"("):
        cursor.in_brackets(read_item)
    else:
        read_item()
    if by_uid:
        items.append("UID")
    changed_since = _changed_since(cursor)
    if changed_since is not None:
        items.append("MODSEQ")
    return FetchMails(which, by_uid, tuple(dict.fromkeys(items)), tuple(sections), changed_since)


def _changed_since(cursor: CommandCursor) -> int | None:
    if not cursor.take(b" ("):
        return None
    cursor.require(b"CHANGEDSINCE ")  # RFC 7162 section 3.1.4.1
    number = cursor.number()
    cursor.require(b")")
    return number


def _item(cursor: CommandCursor, items: list[str], sections: list[MailSection]) -> None:
    if len(items) + len(sections) >= MAX_ITEMS:
        raise BadCommand("too many items")
    name = cursor.match(_ITEM, "an item").decode().upper()
    if cursor.stands_at(b"[") and name in ("BODY", "BODY.PEEK"):
        sections.append(_section(cursor, name == "BODY.PEEK"))
    elif name in MACROS:
        items.extend(MACROS[name])
    elif name in OLD_SECTIONS:
        sections.append(OLD_SECTIONS[name])
    elif name in ITEMS:
        items.append(name)
    else:
        raise BadCommand(f"there is no item {name}")


def _section(cursor: CommandCursor, is_peek: bool) -> MailSection:
    cursor.require(b"[")
    path, kind = _path(cursor), ""
    fields: tuple[str, ...] = ()
    if not cursor.stands_at(b"]"):
        if path:
            cursor.require(b".")
        kind = cursor.match(_KIND, "HEADER, TEXT or MIME").decode().upper()
        if kind == "MIME" and not path:
            raise BadCommand("MIME needs a part number")
        if kind.startswith("HEADER.FIELDS"):
            fields = _fields(cursor)
    cursor.require(b"]")
    first, count = _partial(cursor)
    return MailSection(path, kind, fields, first, count, is_peek, _shown(path, kind, fields, first))


def _path(cursor: CommandCursor) -> tuple[int, ...]:
    found = cursor.find(_PATH)
    return () if found is None else tuple(int(number) for number in found.split(b"."))


def _fields(cursor: CommandCursor) -> tuple[str, ...]:
    cursor.require(b" ")
    return tuple(field.decode("ascii", "replace") for field in cursor.in_brackets(cursor.astring))


def _partial(cursor: CommandCursor) -> tuple[int | None, int]:
    if not cursor.take(b"<"):
        return None, 0
    first = cursor.number()
    cursor.require(b".")
    count = cursor.number()
    cursor.require(b">")
    if count == 0:
        raise BadCommand("a piece has at least one byte")
    return first, count


def _shown(path: tuple[int, ...], kind: str, fields: tuple[str, ...], first: int | None) -> bytes:
    words = [".".join(map(str, path))] if path else []
    section = ".".join([*words, kind]) if kind else "".join(words)
    if fields:
        section += f" ({' '.join(_quoted(field) for field in fields)})"
    behind = "" if first is None else f"<{first}>"
    return f"BODY[{section}]{behind}".encode()


def _quoted(field: str) -> str:
    is_atom = field.isascii() and field.replace("-", "").replace("_", "").isalnum()
    return field if is_atom else '"' + field.replace("\\", "\\\\").replace('"', '\\"') + '"'
