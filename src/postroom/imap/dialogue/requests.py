"""What a client asks for, read and checked for its form."""

from msgspec import Struct

STAR = 2**32  # the last message, in a set of numbers


class NumberSet(Struct, frozen=True):
    """Numbers of messages, or UIDs: pairs of first and last, both included."""

    pairs: tuple[tuple[int, int], ...]

    def ranges(self, last: int) -> list[tuple[int, int]]:
        """From the lower to the higher; `*` is the last message, also where that is the lower."""
        ends = [[last if end == STAR else end for end in pair] for pair in self.pairs]
        return [(min(pair), max(pair)) for pair in ends]


class LogIn(Struct, frozen=True):
    name: str
    password: str


class SelectFolder(Struct, frozen=True):
    folder: str
    is_read_only: bool
    wants_modseq: bool = False


class UnselectFolder(Struct, frozen=True):
    expunges: bool


class ListFolders(Struct, frozen=True):
    command: str
    reference: str
    patterns: tuple[str, ...]
    only_special: bool = False
    status: tuple[str, ...] = ()


class AskStatus(Struct, frozen=True):
    folder: str
    items: tuple[str, ...]


class CreateFolder(Struct, frozen=True):
    folder: str


class DeleteFolder(Struct, frozen=True):
    folder: str


class RenameFolder(Struct, frozen=True):
    folder: str
    name: str


class AppendMail(Struct, frozen=True):
    """The mail itself came in pieces before."""

    folder: str
    flags: frozenset[str]
    at: int | None


class MailSection(Struct, frozen=True):
    """A piece of a mail: of which part, what of it, which fields, and which bytes."""

    path: tuple[int, ...] = ()
    kind: str = ""  # "", HEADER, HEADER.FIELDS, HEADER.FIELDS.NOT, TEXT or MIME
    fields: tuple[str, ...] = ()
    first: int | None = None
    count: int = 0
    is_peek: bool = False
    shown: bytes = b"BODY[]"


class FetchMails(Struct, frozen=True):
    which: NumberSet
    by_uid: bool
    items: tuple[str, ...]
    sections: tuple[MailSection, ...] = ()
    changed_since: int | None = None

    @property
    def marks_seen(self) -> bool:
        return any(not section.is_peek for section in self.sections)


class StoreFlags(Struct, frozen=True):
    which: NumberSet
    by_uid: bool
    mode: str  # "", + or -
    flags: frozenset[str]
    is_silent: bool
    unchanged_since: int | None = None


class SearchKey(Struct, frozen=True):
    """One condition of a search; `keys` are those it is made of."""

    name: str
    value: str = ""
    number: int = 0
    field: str = ""
    keys: tuple["SearchKey", ...] = ()
    which: NumberSet | None = None


class SearchMails(Struct, frozen=True):
    key: SearchKey
    by_uid: bool
    returns: tuple[str, ...] | None = None  # None: the old form of the answer
    wants_modseq: bool = False


class CopyMails(Struct, frozen=True):
    which: NumberSet
    by_uid: bool
    folder: str
    moves: bool


class ExpungeMails(Struct, frozen=True):
    uids: NumberSet | None = None


class EnableExtensions(Struct, frozen=True):
    names: tuple[str, ...]


class PlainCommand(Struct, frozen=True):
    """A command that takes nothing: CAPABILITY, NOOP, CHECK, NAMESPACE, ID, LOGOUT, STARTTLS, IDLE."""

    name: str


class Authenticate(Struct, frozen=True):
    mechanism: str
    initial: bytes | None = None


Request = (
    LogIn
    | SelectFolder
    | UnselectFolder
    | ListFolders
    | AskStatus
    | CreateFolder
    | DeleteFolder
    | RenameFolder
    | AppendMail
    | FetchMails
    | StoreFlags
    | SearchMails
    | CopyMails
    | ExpungeMails
    | EnableExtensions
    | PlainCommand
    | Authenticate
)
