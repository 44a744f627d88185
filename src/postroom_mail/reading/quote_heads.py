"""Lines above a quote, `On … wrote:` and copied header fields: which lines they are, and where they begin."""

import re

from postroom_mail.reading import reply_heads

MAX_HEAD_CHARS = 400
MAX_HEAD_LINES = 6
MAX_BLOCK_LINES = 8

DIRECTION_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DIRECTIONS = re.compile(f"[{DIRECTION_MARKS}]")
_CLOCK = re.compile(r"\d{1,2}[:.h\uff1a]\s?\d\d|\d{1,2}[時时點点시]|(?:19|20)\d\d")
_FIELD_DATE = re.compile(r"\d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_MOMENT = re.compile(r"(?:19|20)\d\d.{1,40}\d[:.]\d\d|\d[:.]\d\d.{1,40}(?:19|20)\d\d")


def head_start(lines: list[str], end: int) -> int | None:
    """Return where a head that ends on this line begins: mail clients wrap it. None if there is no head."""
    joined = fold(lines[end])
    if is_quoted(lines[end]) or not joined:
        return None
    if _is_quote_head(joined):
        return _wrapped_start(lines, end, joined)
    for start in range(end - 1, max(-1, end - MAX_HEAD_LINES), -1):
        folded = fold(lines[start])
        if not folded or is_quoted(lines[start]):
            return None
        joined = f"{folded} {joined}"
        is_first = start == 0 or not lines[start - 1].strip()
        if (is_first or _begins_as_head(folded)) and _is_quote_head(joined):
            return start - _begins_above(lines, start, joined)
    return None


def _wrapped_start(lines: list[str], end: int, joined: str) -> int:
    """Return where a head begins whose last line, `Ann <ann@example.com> wrote:`, could be a whole one."""
    if _begins_as_head(joined):
        return end
    for start in range(end - 1, max(-1, end - MAX_HEAD_LINES), -1):
        folded = fold(lines[start])
        if not folded or is_quoted(lines[start]):
            break
        joined = f"{folded} {joined}"
        if len(joined) > MAX_HEAD_CHARS:
            break
        if folded.startswith(reply_heads.HEAD_STARTS) and _CLOCK.search(joined):
            return start
    return end


def _begins_above(lines: list[str], start: int, joined: str) -> bool:
    """Return whether a head wrapped before its time begins a line higher: `On Wed, Apr 4, 2012 at`."""
    above = fold(lines[start - 1]) if start else ""
    return above.startswith(reply_heads.HEAD_STARTS) and _is_quote_head(f"{above} {joined}")


def filled_above(lines: list[str], place: int) -> int | None:
    for above in range(place - 1, max(-1, place - 3), -1):
        if lines[above].strip():
            return None if is_quoted(lines[above]) else above
    return None


def is_head_above_quote(folded: str) -> bool:
    """Match a head directly above a quote, where less is needed: `ann@example.com wrote:`."""
    if folded.endswith(":") and ("@" in folded or _is_said_with_date(folded)):
        return True
    if folded.endswith((".", "!", "?")) or not _begins_as_head(folded):
        return False
    return _MOMENT.search(folded) is not None or ("@" in folded and _CLOCK.search(folded) is not None)


def _is_said_with_date(folded: str) -> bool:
    return folded.rstrip(" :").endswith(reply_heads.WROTE) and _CLOCK.search(folded) is not None


def _is_quote_head(joined: str) -> bool:
    if len(joined) > MAX_HEAD_CHARS:
        return False
    said = joined.rstrip(" :\uff1a\u00a0").endswith(reply_heads.WROTE)
    if said and "<" in joined and "@" in joined:
        return True
    if joined.startswith("--") and joined.strip("-— :").endswith(reply_heads.WROTE):
        return True
    if not any(letter.isdigit() for letter in joined):
        return False
    is_dated_address = "@" in joined and _CLOCK.search(joined) is not None
    if said:
        return is_dated_address or _begins_as_head(joined) or _MOMENT.search(joined) is not None
    if is_dated_address and joined.endswith((">:", "> :", ">\uff1a", "):", ") :", "]:")):
        return True
    if not is_dated_address and not _begins_as_head(joined):
        return False
    return any(word in joined for word in reply_heads.WROTE_BEFORE_NAME)


def _begins_as_head(joined: str) -> bool:
    return joined.startswith(reply_heads.HEAD_STARTS) or joined[:1].isdigit()


def is_copied_head(lines: list[str], place: int) -> bool:
    """Match `From:` and header lines around it, as Outlook writes them above a quote.

    Some begin with `Date:`.
    """
    if place >= len(lines) or not _field_of(lines[place]):
        return False
    block = [line[:MAX_HEAD_CHARS] for line in lines[place : place + MAX_BLOCK_LINES]]
    fields = {field for line in block if (field := _field_of(line))}
    if _is_short_head(block):
        return True
    if "from" not in fields or len(fields) < 3:
        return False
    has_address = any("@" in line for line in block)
    if _field_of(lines[place]) != "from":
        return has_address or len(fields) >= 4
    # A travel itinerary has a From, a To and a Date too.
    return has_address or "subject" in fields or "sent" in fields


def _is_short_head(block: list[str]) -> bool:
    """Match `From:` or `To:` with an address and an exact `Date:` with its zone, as no person writes it."""
    fields = [_field_of(line) for line in block[:2]]
    if sorted(fields) not in (["date", "from"], ["date", "to"]):
        return False
    date, person = block[fields.index("date")], block[1 - fields.index("date")]
    return "@" in person and _FIELD_DATE.search(date) is not None


def _field_of(line: str) -> str:
    start = line[:40]
    if ":" not in start and "\uff1a" not in start:
        return ""
    name = start.replace("\uff1a", ":").partition(":")[0].strip(" \t\u00a0*\u200e\u200f\u202b\u202c")
    return reply_heads.FIELDS.get(name.lower(), "")


def next_filled(lines: list[str], place: int) -> int:
    for following in range(place + 1, min(place + 3, len(lines))):
        if lines[following].strip():
            return following
    return len(lines)


def quote_follows(lines: list[str], place: int) -> bool:
    following = next_filled(lines, place - 1)
    return following < len(lines) and is_quoted(lines[following])


def is_quoted(line: str) -> bool:
    begins = line.lstrip(" \t\u00a0").startswith((">", "|>", "\uff1e"))
    return begins and not line.rstrip().endswith("<<")  # >>> an advertisement <<<


def fold(line: str) -> str:
    line = line[:MAX_HEAD_CHARS]
    if not line.isascii():
        line = _DIRECTIONS.sub("", line)
    return line.strip().strip("*").strip().lower()
