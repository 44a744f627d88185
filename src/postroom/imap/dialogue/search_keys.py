"""Keys of SEARCH (RFC 3501 section 6.4.4): all must match; depth is limited."""

from datetime import UTC, date, datetime, timedelta

from postroom.imap.dialogue.cursor import BadCommand, CommandCursor
from postroom.imap.dialogue.requests import SearchKey, SearchMails

MAX_KEYS = 200  # each key reads rows; RFC 9051 section 6.4.4 sets no bound
RETURNS = ("MIN", "MAX", "ALL", "COUNT")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FLAGS = {name.upper(): f"\\{name}" for name in ("Answered", "Deleted", "Draft", "Flagged", "Seen")}
TEXTS = {"BCC", "BODY", "CC", "FROM", "SUBJECT", "TEXT", "TO"}
DATES = {"BEFORE", "ON", "SINCE", "SENTBEFORE", "SENTON", "SENTSINCE"}
ALL = SearchKey("ALL")


def read(cursor: CommandCursor, by_uid: bool, max_depth: int) -> SearchMails:
    returns = _returns(cursor)
    if cursor.take(b"CHARSET "):
        charset = cursor.text().upper()
        if charset not in ("UTF-8", "UTF8", "US-ASCII", "ASCII"):
            raise UnknownCharset
        cursor.require(b" ")
    reader = _KeyReader(cursor, max_depth)
    key = reader.all_keys(0)
    cursor.require_end()
    return SearchMails(key, by_uid, returns, reader.has_modseq)


class UnknownCharset(Exception):
    """Only UTF-8 is supported."""


def _returns(cursor: CommandCursor) -> tuple[str, ...] | None:
    if not cursor.take(b"RETURN "):
        return None
    words = cursor.words_in_brackets()
    cursor.require(b" ")
    if not set(words) <= set(RETURNS):
        raise BadCommand(f"RETURN takes {', '.join(RETURNS)}")
    return words or ("ALL",)


class _KeyReader:
    def __init__(self, cursor: CommandCursor, max_depth: int) -> None:
        self._cursor = cursor
        self._max_depth = max_depth
        self._keys = 0
        self.has_modseq = False

    def all_keys(self, depth: int) -> SearchKey:
        keys = self._cursor.several(lambda: self.key(depth))
        return keys[0] if len(keys) == 1 else SearchKey("AND", keys=tuple(keys))

    def key(self, depth: int) -> SearchKey:
        self._keys += 1
        if depth > self._max_depth or self._keys > MAX_KEYS:
            raise BadCommand("the search is too complicated")
        cursor = self._cursor
        if cursor.take(b"("):
            inner = self.all_keys(depth + 1)
            cursor.require(b")")
            return inner
        if cursor.stands_at(*(b"%d" % digit for digit in range(10)), b"*"):
            return SearchKey("NUMBERS", which=cursor.number_set())
        return self._named(cursor.word(), depth)

    def _named(self, name: str, depth: int) -> SearchKey:
        cursor = self._cursor
        if name == "ALL":
            return ALL
        if name in ("NEW", "OLD", "RECENT"):
            recent = SearchKey("RECENT")
            unseen = _not(SearchKey("FLAG", value=FLAGS["SEEN"]))
            both = SearchKey("AND", keys=(recent, unseen))
            return {"NEW": both, "OLD": _not(recent), "RECENT": recent}[name]
        if name in FLAGS:
            return SearchKey("FLAG", value=FLAGS[name])
        if name.startswith("UN") and name[2:] in FLAGS:
            return _not(SearchKey("FLAG", value=FLAGS[name[2:]]))
        cursor.require(b" ")
        return self._with_value(name, depth)

    def _with_value(self, name: str, depth: int) -> SearchKey:
        cursor = self._cursor
        match name:
            case "NOT":
                return _not(self.key(depth + 1))
            case "OR":
                first = self.key(depth + 1)
                cursor.require(b" ")
                return SearchKey("OR", keys=(first, self.key(depth + 1)))
            case "UID":
                return SearchKey("UID", which=cursor.number_set())
            case "KEYWORD" | "UNKEYWORD":
                key = SearchKey("FLAG", value=cursor.flag())
                return key if name == "KEYWORD" else _not(key)
            case "HEADER":
                field = cursor.text().lower()
                cursor.require(b" ")
                return SearchKey("HEADER", value=cursor.text(), field=field)
            case "LARGER" | "SMALLER":
                return SearchKey(name, number=cursor.number())
            case "MODSEQ":
                return self._modseq()
            case _ if name in TEXTS:
                return SearchKey(name, value=cursor.text())
            case _ if name in DATES:
                return SearchKey(name, number=_day(cursor.text()))
        raise BadCommand(f"there is no search for {name}")

    def _modseq(self) -> SearchKey:
        self.has_modseq = True
        if self._cursor.stands_at(b'"'):
            self._cursor.bytes_string()
            self._cursor.require(b" ")
            self._cursor.word()
            self._cursor.require(b" ")
        return SearchKey("MODSEQ", number=self._cursor.number())


def _not(key: SearchKey) -> SearchKey:
    return SearchKey("NOT", keys=(key,))


def _day(text: str) -> int:
    """Return the beginning of the day in milliseconds, in UTC."""
    day, _, rest = text.partition("-")
    month, _, year = rest.partition("-")
    try:
        found = date(int(year), MONTHS.index(month.lower()) + 1, int(day))
        return int(datetime(found.year, found.month, found.day, tzinfo=UTC).timestamp()) * 1000
    except (ValueError, OverflowError):
        raise BadCommand("a date is like 1-Feb-2026") from None


def moment(text: str) -> int:
    """Parse INTERNALDATE in the format of APPEND: `17-Jul-1996 02:44:25 -0700`."""
    words = text.split()
    try:
        days, clock, zone = words
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        if not (len(zone) == 5 and zone[0] in "+-" and zone[1:].isdigit()):
            raise ValueError
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
        of_day = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return _day(days) + int((of_day - offset).total_seconds()) * 1000
    except ValueError:
        raise BadCommand("a time is like 17-Jul-1996 02:44:25 -0700") from None
