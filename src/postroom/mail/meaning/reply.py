"""The new words of a reply: its text without quotes, the heads above them, and signatures.

Read line by line in one pass; nothing here looks further than a few lines around. What was forwarded is new
to the reader, and stays.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from postroom.mail.languages.patterns import one_of
from postroom.mail.meaning import reply_heads

MAX_REPLY_CHARS = 100_000
MAX_HEAD_CHARS = 400
MAX_HEAD_LINES = 6
MAX_DIVIDED = 20
MAX_BLOCK_LINES = 8
MAX_DEVICE_LINE_CHARS = 80
# Real mail has a handful of lines that need a closer look; behind so many, only quotes are left out.
MAX_LOOKS = 150

Lines = tuple[int, int]

_FIELDS = {
    **dict.fromkeys(reply_heads.SUBJECT, "subject"),
    **dict.fromkeys(reply_heads.TO, "to"),
    **dict.fromkeys(reply_heads.DATE, "date"),
    **dict.fromkeys(reply_heads.SENT, "sent"),
    **dict.fromkeys(reply_heads.FROM, "from"),
}
_BLANK_RUN = re.compile(r"\n{3,}")
_BLANK_START = re.compile(r"(?:[^\S\n]*+\n)*+")
_DIRECTION_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_WORDS = (*reply_heads.DEVICE_LINES, *reply_heads.FORWARD_HEADS, *reply_heads.LIST_LINES)
# Quoted lines, and how every line begins that may end the reply, in lower case.
_NOTABLE = re.compile(
    rf"\n(?:[^\S\n]|[*{_DIRECTION_MARKS}])*+(?!\n)(?:"
    r"(?P<quoted>(?:\|?>|\uff1e)[^\n]*+(?:\n[ \t\u00a0]*+(?:\|?>|\uff1e)[^\n]*+)*+)|[_=—#~-]{2}|—|"
    + one_of(_WORDS)
    + "|"
    + one_of(_FIELDS)
    + r"[ \t\u00a0*]*+[:\uff1a])"
)
_SPACES = "".join(filter(str.isspace, map(chr, range(0x10000))))


def _beginnings(words: Iterable[str]) -> Iterator[str]:
    """The first three letters of each; of a shorter word with what may follow it."""
    for word in words:
        first = word.partition(" ")[0][:3]
        yield from (first,) if len(first) == 3 else (first + mark for mark in ("", *_SPACES, *"*:\uff1a"))


# How a line begins that is worth a look: by three letters, or by the first of them alone.
_FIRST_THREE = frozenset(_beginnings((*_WORDS, *_FIELDS)))
_FIRST = frozenset(
    (*_SPACES, *_DIRECTION_MARKS, *"*|>\uff1e_=—#~-", *(start for start in _FIRST_THREE if len(start) == 1))
)
# How a line ends that may be the end of an "On ... wrote:" head, before what may stand behind that.
_HEAD_ENDS = (":", "\uff1a", "---")
_BEHIND_HEAD = f" \t\u00a0*{_DIRECTION_MARKS}"
_LAST_OF_HEAD = frozenset((*_BEHIND_HEAD, *(end[-1] for end in _HEAD_ENDS)))  # most lines end otherwise
_DIRECTIONS = re.compile(f"[{_DIRECTION_MARKS}]")
_CLOCK = re.compile(r"\d{1,2}[:.h\uff1a]\s?\d\d|\d{1,2}[時时點点시]|(?:19|20)\d\d")
_MOMENT = re.compile(r"(?:19|20)\d\d.{1,40}\d[:.]\d\d|\d[:.]\d\d.{1,40}(?:19|20)\d\d")
_HEAD_IN_LINE = re.compile(
    r"(?<=\S)[ \t]+((?:On|Am|Le|El|Em|Il|Op|Den|Dne|W dniu|På|Pe) (?:[^\s\d]{1,12} ){0,3}\d[^\n]{0,380})\Z"
)
_COLON = re.compile(r"[^\n:]{0,200}?:[ \t]*(?=[^\n])")
_RULE = "-_=—#~*"


def reply_text(body_text: str, subject: str = "") -> str:
    """Only what is new. When nothing is left, the text without quotes; empty when all of it is quoted."""
    text = body_text[:MAX_REPLY_CHARS]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _divided(text)
    span, lines, kept = _found(text, subject)
    return _joined(lines, kept) if span is None else text[span[0] : span[1]]


def _found(text: str, subject: str) -> tuple[tuple[int, int] | None, list[str], list[Lines]]:
    """The span of what is new, if it is one; if not, the lines and those of them that are new."""
    notable = _Notable(text)
    if not notable.places:
        return _filled_span(text), [], []
    kept = _kept(notable, subject)
    return _span(notable.lines, kept), notable.lines, kept


def _divided(text: str) -> str:
    """With a line break between new words and a head that some programs write behind them."""
    for verb in reply_heads.WROTE_ON_THE_LINE:
        place = text.find(verb)
        for _ in range(MAX_DIVIDED):
            if place == -1:
                break
            start = text.rfind("\n", 0, place) + 1
            head = _HEAD_IN_LINE.search(text, max(start, place - MAX_HEAD_CHARS), place)
            if head is not None and "@" not in text[start : head.start()] and text[start : start + 1] != ">":
                text = f"{text[: head.start()]}\n\n{text[head.end() - len(head[1]) :]}"
                text = _below_head(text, verb, place)
            place = text.find(verb, place + len(verb))
    return text


def _below_head(text: str, verb: str, place: int) -> str:
    """What follows the head on its line begins a line of its own."""
    end = _COLON.match(text, text.find(verb, place) + len(verb.rstrip(":")))
    return text if end is None else f"{text[: end.end()].rstrip()}\n{text[end.end() :].lstrip(' ')}"


def _span(lines: list[str], kept: list[Lines]) -> tuple[int, int] | None:
    if len(kept) != 1:
        return None if kept else (0, 0)
    first, behind = kept[0]
    start = sum(map(len, lines[:first])) + first
    begin, end = _filled_span("\n".join(lines[first:behind]))
    return start + begin, start + end


def _filled_span(text: str) -> tuple[int, int]:
    """Without blank lines before it and what is blank behind it."""
    end = len(text.rstrip())
    blank = _BLANK_START.match(text) if end else None
    return blank.end() if blank else 0, end


def _joined(lines: list[str], kept: list[Lines]) -> str:
    text = "\n".join(line.rstrip() for first, behind in kept for line in lines[first:behind])
    return (_BLANK_RUN.sub("\n\n", text) if "\n\n\n" in text else text).strip("\n")


def _kept(notable: "_Notable", subject: str) -> list[Lines]:
    """The runs of lines that are new, each with a word in it."""
    lines = notable.lines
    is_forward = subject.strip().lower().startswith(reply_heads.FORWARD_SUBJECTS)
    return _filled(lines, _new_lines(lines, notable, is_forward)) or _filled(
        lines, _unquoted_lines(lines, notable)
    )


def _filled(lines: list[str], runs: Iterable[Lines]) -> list[Lines]:
    """Those with a word in them; neighbours are one."""
    joined: list[Lines] = []
    for first, behind in runs:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], behind)
        else:
            joined.append((first, behind))
    return [run for run in joined if any(map(str.strip, lines[run[0] : run[1]]))]


def _ends_head(line: str) -> bool:
    return line.rstrip(_BEHIND_HEAD).endswith(_HEAD_ENDS)


class _Notable:
    """The places that may end the reply, and how many lines each quote and each head above a quote takes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.quotes: dict[int, int] = {}
        self.heads: dict[int, int] = {}
        lowered = text.lower()
        self._lowered = lowered.split("\n")
        worth_a_look = [
            number
            for number, line in enumerate(self._lowered)
            if line[:3] in _FIRST_THREE or line[:1] in _FIRST or line[-1:] in _LAST_OF_HEAD
        ]
        looked_at = list(self._note_quotes(f"\n{lowered}\n", worth_a_look))[:MAX_LOOKS]
        self._note_heads(worth_a_look)
        self.places = sorted({*looked_at, *self.quotes, *self.heads})

    @cached_property
    def lines(self) -> list[str]:
        return self._text.split("\n")

    def _note_quotes(self, text: str, numbers: Iterable[int]) -> Iterator[int]:
        """Gives the other lines that begin as one does which may end the reply."""
        start, last, read_to = 0, 0, 0
        for number in numbers:
            start += sum(map(len, self._lowered[last:number])) + number - last
            last = number
            match = _NOTABLE.match(text, start) if start >= read_to else None
            if match is None:
                continue
            read_to = match.end()
            if match.lastgroup == "quoted":
                self.quotes[number] = match.group().count("\n")
            else:
                yield number

    def _note_heads(self, numbers: Iterable[int]) -> None:
        ends = (number for number in numbers if _ends_head(self._lowered[number]))
        for end in islice(ends, MAX_LOOKS):
            start = _head_start(self.lines, end)
            if start is not None:
                self.heads[start] = end + 1 - start
        for quote in islice(self.quotes, MAX_LOOKS):
            above = _filled_above(self.lines, quote)
            if above is not None and _is_head_above_quote(_folded(self.lines[above])):
                self.heads.setdefault(above, 1)


def _head_start(lines: list[str], end: int) -> int | None:
    """Where a head that ends on this line begins: mail programs wrap it. None: there is no head."""
    joined = _folded(lines[end])
    if _is_quoted(lines[end]) or not joined:
        return None
    if _is_quote_head(joined):
        return end
    for start in range(end - 1, max(-1, end - MAX_HEAD_LINES), -1):
        folded = _folded(lines[start])
        if not folded or _is_quoted(lines[start]):
            return None
        joined = f"{folded} {joined}"
        is_first = start == 0 or not lines[start - 1].strip()
        if (is_first or _begins_as_head(folded)) and _is_quote_head(joined):
            return start - _begins_above(lines, start, joined)
    return None


def _begins_above(lines: list[str], start: int, joined: str) -> bool:
    """A head that is wrapped before its clock begins a line higher: `On Wed, Apr 4, 2012 at`."""
    above = _folded(lines[start - 1]) if start else ""
    return above.startswith(reply_heads.HEAD_STARTS) and _is_quote_head(f"{above} {joined}")


def _filled_above(lines: list[str], place: int) -> int | None:
    for above in range(place - 1, max(-1, place - 3), -1):
        if lines[above].strip():
            return None if _is_quoted(lines[above]) else above
    return None


def _is_head_above_quote(folded: str) -> bool:
    """Directly above a quote less is needed: `ann@example.com wrote:`, `2011/4/7 Ann <ann@example.com>`."""
    if folded.endswith(":") and ("@" in folded or _is_said_with_date(folded)):
        return True
    if folded.endswith((".", "!", "?")) or not _begins_as_head(folded):
        return False
    return _MOMENT.search(folded) is not None or ("@" in folded and _CLOCK.search(folded) is not None)


def _is_said_with_date(folded: str) -> bool:
    return folded.rstrip(" :").endswith(reply_heads.WROTE) and _CLOCK.search(folded) is not None


def _new_lines(lines: list[str], notable: _Notable, is_forward: bool) -> Iterator[Lines]:
    read_to = 0
    for place in notable.places:
        if place < read_to:
            continue
        left_out = notable.quotes.get(place, 0)
        folded = "" if left_out else _folded(lines[place])
        if not left_out and (_is_forward_mark(folded) or (is_forward and _is_copied_head(lines, place))):
            yield read_to, len(lines)
            return
        if not left_out and _is_signature(lines, place, folded):
            yield read_to, place
            yield _forwarded_below(lines, place + 1, notable)
            return
        head = notable.heads.get(place, 0)
        if (head and not _quote_follows(lines, place + head)) or (
            folded and _is_above_a_quote(lines, place, folded)
        ):
            yield read_to, place
            return
        if left_out or head:
            yield read_to, place
            read_to = place + (left_out or head)
    yield read_to, len(lines)


def _forwarded_below(lines: list[str], start: int, notable: _Notable) -> Lines:
    """A forward stands below the signature of the one who forwards."""
    places = (place for place in notable.places if place >= start and place not in notable.quotes)
    return next((place for place in places if _is_forward_mark(_folded(lines[place]))), len(lines)), len(
        lines
    )


def _unquoted_lines(lines: list[str], notable: _Notable) -> Iterator[Lines]:
    read_to = 0
    for place in notable.places:
        left_out = notable.quotes.get(place) or notable.heads.get(place, 0)
        if left_out and place >= read_to:
            yield read_to, place
            read_to = place + left_out
    yield read_to, len(lines)


def _is_quoted(line: str) -> bool:
    return line.lstrip(" \t\u00a0").startswith((">", "|>", "\uff1e"))


def _folded(line: str) -> str:
    line = line[:MAX_HEAD_CHARS]
    if not line.isascii():
        line = _DIRECTIONS.sub("", line)
    return line.strip().strip("*").strip().lower()


def _is_forward_mark(folded: str) -> bool:
    return folded in reply_heads.FORWARD_HEADS or _is_ruled(folded, reply_heads.FORWARD_WORDS)


def _is_signature(lines: list[str], place: int, folded: str) -> bool:
    if lines[place] in ("-- ", "--", "--\u00a0"):
        return True
    if not folded:
        return False
    is_device_line = len(folded) <= MAX_DEVICE_LINE_CHARS and folded.startswith(reply_heads.DEVICE_LINES)
    return (
        is_device_line or folded.startswith(reply_heads.LIST_LINES) or _is_list_footer(lines, place, folded)
    )


def _is_list_footer(lines: list[str], place: int, folded: str) -> bool:
    """A long rule, and words of a mailing list below it."""
    if len(folded) < 10 or folded[0] not in _RULE or folded.strip(f"{_RULE}+>/\\ "):
        return False
    below = " ".join(line[:200] for line in lines[place + 1 : place + 4]).lower()
    return any(word in below for word in reply_heads.LIST_WORDS)


def _is_above_a_quote(lines: list[str], place: int, folded: str) -> bool:
    return (
        _is_ruled(folded, reply_heads.ORIGINAL_WORDS)
        or _is_copied_head(lines, place)
        or (_is_rule(folded) and _is_copied_head(lines, _next_filled(lines, place)))
    )


def _is_ruled(folded: str, words: tuple[str, ...]) -> bool:
    """Words between dashes, such as `-----Original Message-----`."""
    if not folded.startswith(("--", "__", "==", "—", "**")):
        return False
    return folded.strip("-_=—* :").startswith(words)


def _is_rule(folded: str) -> bool:
    return folded[0] in "-_=—" and len(folded) >= 3 and not folded.strip("-_=—")


def _is_copied_head(lines: list[str], place: int) -> bool:
    """`From:` and header lines around it, as Outlook writes them above a quote; some begin with `Date:`."""
    if place >= len(lines) or not _field_of(lines[place]):
        return False
    block = [line[:MAX_HEAD_CHARS] for line in lines[place : place + MAX_BLOCK_LINES]]
    fields = {field for line in block if (field := _field_of(line))}
    if "from" not in fields or len(fields) < 3:
        return False
    has_address = any("@" in line for line in block)
    if _field_of(lines[place]) != "from":
        return has_address or len(fields) >= 4
    # A journey, too, has a From, a To and a Date.
    return has_address or "subject" in fields or "sent" in fields


def _field_of(line: str) -> str:
    start = line[:40]
    if ":" not in start and "\uff1a" not in start:
        return ""
    name = start.replace("\uff1a", ":").partition(":")[0].strip(" \t\u00a0*\u200e\u200f\u202b\u202c")
    return _FIELDS.get(name.lower(), "")


def _next_filled(lines: list[str], place: int) -> int:
    for following in range(place + 1, min(place + 3, len(lines))):
        if lines[following].strip():
            return following
    return len(lines)


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
    return joined.startswith(reply_heads.HEAD_STARTS) or joined[0].isdigit()


def _quote_follows(lines: list[str], place: int) -> bool:
    following = _next_filled(lines, place - 1)
    return following < len(lines) and _is_quoted(lines[following])
