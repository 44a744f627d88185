"""HTML as a stream of properly nested pieces, read in one pass.

Tree builders that follow the HTML standard copy open formatting elements into every new paragraph, so that
80 kB of markup can cost gigabytes; this reader takes time and memory in proportion to its input.
"""

import html as entities
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

MAX_MARKUP_CHARS = 1_000_000
MAX_TAGS = 50_000
MAX_ATTRIBUTES = 64
MAX_REOPENED = 8


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Open(Struct, frozen=True, gc=False):
    """A start tag. An element that cannot have content gets no Close."""

    name: str
    attributes: dict[str, str]


class Close(Struct, frozen=True, gc=False):
    name: str


class Text(Struct, frozen=True, gc=False):
    data: str


Piece = Open | Close | Text

VOID = names("area base br col embed hr img input link meta param source track wbr")
RAW = names("script style iframe noembed noframes xmp")
ESCAPABLE_RAW = frozenset({"textarea", "title"})
FORMATTING = names("a b big code em font i nobr s small strike strong tt u")
ENDS_PARAGRAPH = names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr li dd dt main menu nav ol p pre section summary table ul"
)
# A start tag closes these, as far as no barrier lies between (HTML standard, 13.2.6.4.7 and 13.2.6.4.13).
CLOSES = {
    "li": ("li",),
    "dd": ("dd", "dt"),
    "dt": ("dd", "dt"),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "tr": ("td", "th", "tr"),
    "tbody": ("tr", "tbody", "thead", "tfoot"),
    "thead": ("tr", "tbody", "thead", "tfoot"),
    "tfoot": ("tr", "tbody", "thead", "tfoot"),
    "option": ("option",),
    "a": ("a",),
}
CELLS = ("td", "th", "caption", "table", "template", "object", "button")
TABLE = ("table", "template")
BARRIERS: dict[str, tuple[str, ...]] = {
    "li": ("ul", "ol", *CELLS),
    "dd": ("dl", *CELLS),
    "dt": ("dl", *CELLS),
    **dict.fromkeys(("td", "th", "tr", "tbody", "thead", "tfoot", "caption"), TABLE),
    **dict.fromkeys(("table", "template", "body", "html"), ("template",)),
}

_TAG_START = re.compile(r"<[a-zA-Z/!?]")  # any other bracket is text
_PLAIN_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)>")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_BETWEEN = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(r"""([^\s/>][^\s/>=]*)(?:\s*=\s*("[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>]*))?""")
_COMMENT_END = re.compile(r"--!?>")
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW | ESCAPABLE_RAW}
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{10,};?")


def unescape(text: str) -> str:
    """Character references resolved; a number too long for any character becomes U+FFFD."""
    if "&" not in text:
        return text
    return entities.unescape(_LONG_REFERENCE.sub("\ufffd", text))


def is_cut(html: str) -> bool:
    """Whether some of it may not be read: each tag takes a bracket."""
    return len(html) > MAX_MARKUP_CHARS or html.count("<") > MAX_TAGS


def tokens(html: str) -> Iterator[Piece]:
    """The tags and texts in the order they are written, nested or not."""
    html = html[:MAX_MARKUP_CHARS]
    position, tags = 0, 0
    while position < len(html) and tags < MAX_TAGS:
        tag = _TAG_START.search(html, position)
        bracket = len(html) if tag is None else tag.start()
        if bracket > position:
            yield Text(unescape(html[position:bracket]))
        if bracket == len(html):
            return
        piece, position = _after_bracket(html, bracket)
        if piece is None:
            continue
        yield piece
        tags += 1
        if isinstance(piece, Open) and piece.name in _RAW_END:
            end = _raw_end(html, position, piece.name)
            raw = html[position:end]
            yield Text(unescape(raw) if piece.name in ESCAPABLE_RAW else raw)
            position = end


def _after_bracket(html: str, start: int) -> tuple[Piece | None, int]:
    if plain := _PLAIN_TAG.match(html, start):
        tag = plain[2].lower()
        return (Close(tag) if plain[1] else Open(tag, {})), plain.end()
    following = html[start + 1 : start + 2]
    if following == "!" or following == "?":
        return None, _end_of_comment(html, start)
    closing = following == "/"
    name = _NAME.match(html, start + 2 if closing else start + 1)
    if name is not None:
        attributes, end = _attributes(html, name.end())
        tag = name.group().lower()
        return (Close(tag) if closing else Open(tag, attributes)), end
    return None, _past(html, ">", start)


def _end_of_comment(html: str, start: int) -> int:
    if not html.startswith("<!--", start):
        return _past(html, ">", start)
    for short in (">", "->"):
        if html.startswith(short, start + 4):
            return start + 4 + len(short)
    end = _COMMENT_END.search(html, start + 4)
    return end.end() if end else len(html)


def _past(html: str, mark: str, start: int) -> int:
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)


def _attributes(html: str, position: int) -> tuple[dict[str, str], int]:
    """The attributes up to the end of the tag. The first of equal names counts, as in browsers."""
    attributes: dict[str, str] = {}
    while True:
        between = _BETWEEN.match(html, position)
        assert between is not None
        position = between.end()
        if position >= len(html):
            return attributes, position
        if html[position] == ">":
            return attributes, position + 1
        found = _ATTRIBUTE.match(html, position)
        assert found is not None
        position = found.end()
        name = found[1].lower()
        if name not in attributes and len(attributes) < MAX_ATTRIBUTES:
            attributes[name] = _attribute_value(found[2])


def _attribute_value(written: str | None) -> str:
    if not written:
        return ""
    if written[0] in "\"'":
        return unescape(written[1:].removesuffix(written[0]))
    return unescape(written)


def _raw_end(html: str, position: int, name: str) -> int:
    end = _RAW_END[name].search(html, position)
    return end.start() if end else len(html)


def nested(html: str) -> Iterator[Piece]:
    """The pieces in proper nesting: each Open that can hold content has its Close, in order."""
    elements = _Elements()
    for piece in tokens(html):
        if isinstance(piece, Open):
            yield from elements.open(piece)
        elif isinstance(piece, Close):
            yield from elements.close(piece.name)
        else:
            yield piece
    yield from elements.close_all()


@dataclass(slots=True)
class _Elements:
    """The open elements, with the places of each name, so that no question needs a walk down the stack."""

    stack: list[Open] = field(default_factory=list)
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def open(self, element: Open) -> Iterator[Piece]:
        if element.name in ENDS_PARAGRAPH:
            yield from self._close_if_open("p")
        for name in CLOSES.get(element.name, ()):
            yield from self._close_if_open(name)
        if element.name not in VOID:
            self._push(element)
        yield element

    def close(self, name: str) -> Iterator[Piece]:
        if name == "br":
            yield Open("br", {})
        else:
            yield from self._close_if_open(name)

    def close_all(self) -> Iterator[Piece]:
        while self.stack:
            yield Close(self._pop().name)

    def _close_if_open(self, name: str) -> Iterator[Piece]:
        place = self._last(name)
        if place < 0 or self._is_behind_barrier(name, place):
            return
        survivors: list[Open] = []
        while len(self.stack) > place + 1:
            element = self._pop()
            yield Close(element.name)
            if element.name in FORMATTING:
                survivors.append(element)
        yield Close(self._pop().name)
        if name not in CELLS and name != "tr":
            yield from self._reopen(survivors)

    def _reopen(self, survivors: list[Open]) -> Iterator[Piece]:
        """Formatting that was not closed goes on behind the end of its block, as browsers show it."""
        for element in reversed(survivors[-MAX_REOPENED:]):
            self._push(element)
            yield element

    def _is_behind_barrier(self, name: str, place: int) -> bool:
        if place == len(self.stack) - 1:
            return False
        return any(self._last(barrier) > place for barrier in BARRIERS.get(name, CELLS))

    def _last(self, name: str) -> int:
        places = self.places.get(name)
        return places[-1] if places else -1

    def _push(self, element: Open) -> None:
        self.places[element.name].append(len(self.stack))
        self.stack.append(element)

    def _pop(self) -> Open:
        element = self.stack.pop()
        self.places[element.name].pop()
        return element
