"""The new words of a reply: its text without quotes, the heads above them, and signatures.

Read line by line in one pass; nothing here looks further than a few lines around. Forwarded text is new to
the reader, and stays.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from string import digits

from postroom_mail.languages.patterns import late, one_of
from postroom_mail.reading import quote_heads, reply_heads
from postroom_mail.reading.quote_heads import DIRECTION_MARKS, MAX_HEAD_CHARS

MAX_REPLY_CHARS = 100_000
MAX_DIVIDED = 20
MAX_DEVICE_LINE_CHARS = 80
# Real mail has a handful of lines that need a closer look; after so many, only quotes are left out.
MAX_LOOKS = 150

Lines = tuple[int, int]

_BLANK_RUN = re.compile(r"\n{3,}")
_BLANK_START = re.compile(r"(?:[^\S\n]*+\n)*+")
_WORDS = (*reply_heads.DEVICE_LINES, *reply_heads.FORWARD_HEADS, *reply_heads.LIST_LINES)
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001)))).replace("\n", "")
_COLON_NEXT = "\0"


# Not >>> an advertisement <<<.
_QUOTED = r"(?:\|?>|\uff1e)(?![^\n]*<<[ \t]*\n)[^\n]*+"
# A link that a program put in front of the mark of its line, or wrapped without a mark.
_BROKEN_QUOTE = (
    r"\n(?:[ \t]*+\(https?://[^\s)]*+\) >|[^\s()>=/]{0,200}+[=/][^\s()>]{0,200}+\))[ \t]*+(?=\n[ \t]*+>)"
)


def _notable(words: Iterable[str], fields: Iterable[str]) -> str:
    """Matches quoted lines, and beginnings of lines that may end the reply, in lower case."""
    named = one_of((*words, *(f"{name}{_COLON_NEXT}" for name in fields)))
    return (
        rf"\n[{_SPACES}*{DIRECTION_MARKS}]*+(?:"
        rf"(?P<quoted>{_QUOTED}(?:\n[ \t\u00a0]*+{_QUOTED}|{_BROKEN_QUOTE})*)|[_=—#~-]{{2}}|—|"
        + named.replace(_COLON_NEXT, r"[ \t\u00a0*]*+[:\uff1a]")
        + ")"
    )


_NOTABLE = late(lambda: _notable(_WORDS, reply_heads.FIELDS))
_ASCII_NOTABLE = late(lambda: _notable(filter(str.isascii, _WORDS), filter(str.isascii, reply_heads.FIELDS)))
# The end of a line that may end an "On ... wrote:" head, before what may follow that.
_HEAD_ENDS = (":", "\uff1a", "---")
_BEHIND_HEAD = f" \t\u00a0*{DIRECTION_MARKS}"
_LAST_OF_HEAD = re.compile(rf"\n(?<=[{_BEHIND_HEAD}:\uff1a-]\n)")  # most lines end otherwise
_HEAD_IN_LINE = re.compile(
    r"(?<=[^\s-])-*[ \t]+"
    r"((?:On|Am|Le|El|Em|Il|Op|Den|Dne|W dniu|På|Pe) (?:[^\s\d]{1,12} ){0,3}\d[^\n]{0,380})\Z"
)
# A head whose address is a link of Polymail, on lines of its own.
_LINKED_HEAD_SIGN = "\n<\nmailto:"
_LINKED_HEAD = re.compile(r"\n{1,2}<\nmailto:([^\n]{1,300})\n> (?=wrote:)")
_COLON = re.compile(r"[^\n:]{0,200}?:[ \t]*(?=[^\n])")
_RULE = "-_=—#~*"


def reply_text(body_text: str, subject: str = "") -> str:
    """Return only the new text of a reply: without quotes, the heads above them, and signatures.

    If nothing is left, it is the text without quotes; "" if all of it is quoted.

    >>> reply_text("Yes, at noon.\\n\\nOn Mon, 4 May 2026 Bob <bob@example.org> wrote:\\n> Shall we meet?\\n")
    'Yes, at noon.'
    """
    text = body_text[:MAX_REPLY_CHARS]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _LINKED_HEAD_SIGN in text:
        text = _LINKED_HEAD.sub(r" \1 ", text)
    text = _divided(text)
    span, lines, kept = _found(text, subject)
    return _joined(lines, kept) if span is None else text[span[0] : span[1]]


def _found(text: str, subject: str) -> tuple[tuple[int, int] | None, list[str], list[Lines]]:
    """Return the span of the new text if it is contiguous; else the lines, and the new runs of them."""
    notable = _Notable(text)
    if not notable.places:
        return _filled_span(text), [], []
    kept = _kept(notable, subject)
    return _span(notable.lines, kept), notable.lines, kept


def _divided(text: str) -> str:
    """Inserts a line break between new words and a head that some programs write after them."""
    is_ascii = text.isascii()
    if is_ascii and not any(map(text.__contains__, digits)):  # a head has a date
        return text
    for verb in reply_heads.WROTE_ON_THE_LINE:
        if is_ascii and not verb.isascii():
            continue
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
    """Put what follows the head on its line on a line below it."""
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
    """Return the span without blank lines at the beginning and white space at the end."""
    end = len(text.rstrip())
    blank = _BLANK_START.match(text) if end else None
    return blank.end() if blank else 0, end


def _joined(lines: list[str], kept: list[Lines]) -> str:
    text = "\n".join(line.rstrip() for first, behind in kept for line in lines[first:behind])
    return (_BLANK_RUN.sub("\n\n", text) if "\n\n\n" in text else text).strip("\n")


def _kept(notable: "_Notable", subject: str) -> list[Lines]:
    """Return the runs of new lines, each with a word in it."""
    lines = notable.lines
    is_forward = subject.strip().lower().startswith(reply_heads.FORWARD_SUBJECTS)
    return _filled(lines, _new_lines(lines, notable, is_forward)) or _filled(
        lines, _unquoted_lines(lines, notable)
    )


def _filled(lines: list[str], runs: Iterable[Lines]) -> list[Lines]:
    """Runs with a word in them; adjacent ones are joined."""
    joined: list[Lines] = []
    for first, behind in runs:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], behind)
        else:
            joined.append((first, behind))
    return [run for run in joined if any(map(str.strip, lines[run[0] : run[1]]))]


def _numbered(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield its matches, each with the number of line breaks before it."""
    number = read_to = 0
    for match in pattern.finditer(text):
        number += text.count("\n", read_to, match.start())
        read_to = match.start()
        yield number, match


class _Notable:
    """Positions that may end the reply, and how many lines each quote and each head above a quote has."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.quotes: dict[int, int] = {}
        self.heads: dict[int, int] = {}
        looked_at = list(self._mark_quotes(f"\n{text.lower()}\n"))[:MAX_LOOKS]
        self._mark_heads()
        self.places = sorted({*looked_at, *self.quotes, *self.heads})

    @cached_property
    def lines(self) -> list[str]:
        return self._text.split("\n")

    def _mark_quotes(self, text: str) -> Iterator[int]:
        """Yields the other lines that begin like one that may end the reply."""
        pattern = _ASCII_NOTABLE if text.isascii() else _NOTABLE
        for number, match in _numbered(pattern, text):
            if match.lastgroup == "quoted":
                self.quotes[number] = match.group().count("\n")
            else:
                yield number

    def _head_ends(self) -> Iterator[int]:
        if any(end in self._text for end in _HEAD_ENDS):
            for number, _ in _numbered(_LAST_OF_HEAD, f"{self._text}\n"):
                if self.lines[number].rstrip(_BEHIND_HEAD).endswith(_HEAD_ENDS):
                    yield number

    def _mark_heads(self) -> None:
        for end in islice(self._head_ends(), MAX_LOOKS):
            start = quote_heads.head_start(self.lines, end)
            if start is not None:
                self.heads[start] = end + 1 - start
        for quote in islice(self.quotes, MAX_LOOKS):
            above = quote_heads.filled_above(self.lines, quote)
            if above is not None and quote_heads.is_head_above_quote(quote_heads.fold(self.lines[above])):
                self.heads.setdefault(above, 1)


def _new_lines(lines: list[str], notable: _Notable, is_forward: bool) -> Iterator[Lines]:
    read_to = 0
    for place in notable.places:
        if place < read_to:
            continue
        left_out = notable.quotes.get(place, 0)
        folded = "" if left_out else quote_heads.fold(lines[place])
        if not left_out and (
            _is_forward_mark(folded) or (is_forward and quote_heads.is_copied_head(lines, place))
        ):
            yield read_to, len(lines)
            return
        if not left_out and _is_signature(lines, place, folded):
            yield read_to, place
            yield _forwarded_below(lines, place + 1, notable)
            return
        head = notable.heads.get(place, 0)
        if (head and not quote_heads.quote_follows(lines, place + head)) or (
            folded and _is_above_a_quote(lines, place, folded)
        ):
            yield read_to, place
            return
        if left_out or head:
            yield read_to, place
            read_to = place + (left_out or head)
    yield read_to, len(lines)


def _forwarded_below(lines: list[str], start: int, notable: _Notable) -> Lines:
    """Return the forwarded lines. A forward is below the signature of the forwarder."""
    places = (place for place in notable.places if place >= start and place not in notable.quotes)
    return next(
        (place for place in places if _is_forward_mark(quote_heads.fold(lines[place]))), len(lines)
    ), len(lines)


def _unquoted_lines(lines: list[str], notable: _Notable) -> Iterator[Lines]:
    read_to = 0
    for place in notable.places:
        left_out = notable.quotes.get(place) or notable.heads.get(place, 0)
        if left_out and place >= read_to:
            yield read_to, place
            read_to = place + left_out
    yield read_to, len(lines)


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
    """Return whether it is a long rule with words of a mailing list below it."""
    if len(folded) < 10 or folded[0] not in _RULE or folded.strip(f"{_RULE}+>/\\ "):
        return False
    below = " ".join(line[:200] for line in lines[place + 1 : place + 4]).lower()
    return any(word in below for word in reply_heads.LIST_WORDS)


def _is_above_a_quote(lines: list[str], place: int, folded: str) -> bool:
    return (
        _is_ruled(folded, reply_heads.ORIGINAL_WORDS)
        or quote_heads.is_copied_head(lines, place)
        or (_is_rule(folded) and quote_heads.is_copied_head(lines, quote_heads.next_filled(lines, place)))
    )


def _is_ruled(folded: str, words: tuple[str, ...]) -> bool:
    """Match words between dashes, such as `-----Original Message-----`."""
    if not folded.startswith(("--", "__", "==", "—", "**")):
        return False
    return folded.strip("-_=—* :").startswith(words)


def _is_rule(folded: str) -> bool:
    return folded[:1] in tuple("-_=—") and len(folded) >= 3 and not folded.strip("-_=—")
