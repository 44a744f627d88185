"""Parsed requests of a client."""

from msgspec import Struct

STAR = 2**32  # the last message, in a set of numbers, which are smaller (RFC 3501 section 9)


class NumberSet(Struct, frozen=True):
    """Message numbers or UIDs: pairs of first and last, both included."""

    pairs: tuple[tuple[int, int], ...]

    def ranges(self, last: int) -> list[tuple[int, int]]:
        """Return ranges in order and apart from each other: `1:*,1:*` is one.

        `*` is the last message, even if that is the lower end.
        """
        ends = [[last if end == STAR else end for end in pair] for pair in self.pairs]
        found: list[tuple[int, int]] = []
        for low, high in sorted((min(pair), max(pair)) for pair in ends):
            if found and low <= found[-1][1] + 1:
                found[-1] = found[-1][0], max(found[-1][1], high)
            else:
                found.append((low, high))
        return found


class Request(Struct, frozen=True):
    """One parsed command."""


class LogIn(Request, frozen=True):
    name: str
    password: str


class SelectFolder(Request, frozen=True):
    folder: str
    is_read_only: bool
    wants_modseq: bool = False


class UnselectFolder(Request, frozen=True):
    expunges: bool


class ListFolders(Request, frozen=True):
    command: str
    reference: str
    patterns: tuple[str, ...]
    only_special: bool = False
    status: tuple[str, ...] = ()


class AskStatus(Request, frozen=True):
    folder: str
    items: tuple[str, ...]


class CreateFolder(Request, frozen=True):
    folder: str


class DeleteFolder(Request, frozen=True):
    folder: str


class RenameFolder(Request, frozen=True):
    folder: str
    name: str


class AppendMail(Request, frozen=True):
    """The email itself came in pieces before."""

    folder: str
    flags: frozenset[str]
    at: int | None


class MailSection(Struct, frozen=True):
    """A section of an email: the part, what of it, which fields, and which bytes."""

    path: tuple[int, ...] = ()
    kind: str = ""  # "", HEADER, HEADER.FIELDS, HEADER.FIELDS.NOT, TEXT or MIME
    fields: tuple[str, ...] = ()
    first: int | None = None
    count: int = 0
    is_peek: bool = False
    shown: bytes = b"BODY[]"


class FetchMails(Request, frozen=True):
    which: NumberSet
    by_uid: bool
    items: tuple[str, ...]
    sections: tuple[MailSection, ...] = ()
    changed_since: int | None = None

    @property
    def marks_seen(self) -> bool:
        return any(not section.is_peek for section in self.sections)


class StoreFlags(Request, frozen=True):
    which: NumberSet
    by_uid: bool
    mode: str  # "", + or -
    flags: frozenset[str]
    is_silent: bool
    unchanged_since: int | None = None


class SearchKey(Struct, frozen=True):
    """One condition of a search; `keys` are its parts."""

    name: str
    value: str = ""
    number: int = 0
    field: str = ""
    keys: tuple["SearchKey", ...] = ()
    which: NumberSet | None = None
    ranges: tuple[tuple[int, int], ...] = ()  # of `which`, once the folder is known


class SearchMails(Request, frozen=True):
    key: SearchKey
    by_uid: bool
    returns: tuple[str, ...] | None = None  # None: the old form of the answer
    wants_modseq: bool = False
    tag: bytes = b""


class CopyMails(Request, frozen=True):
    which: NumberSet
    by_uid: bool
    folder: str
    moves: bool


class ExpungeMails(Request, frozen=True):
    uids: NumberSet | None = None


class EnableExtensions(Request, frozen=True):
    names: tuple[str, ...]


class PlainCommand(Request, frozen=True):
    """A command without arguments: CAPABILITY, NOOP, CHECK, NAMESPACE, ID, LOGOUT, STARTTLS, IDLE."""

    name: str


class Authenticate(Request, frozen=True):
    mechanism: str
    initial: bytes | None = None
