"""HTML as a stream of properly nested pieces, read in one pass.

Tree builders that follow the HTML standard copy open formatting elements into every new paragraph, so that
80 kB of markup can cost gigabytes; this reader takes time and memory in proportion to its input.
"""

import html as entities
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from msgspec import Struct

MAX_MARKUP_CHARS = 1_000_000
MAX_TAGS = 50_000
MAX_ATTRIBUTES = 64
MAX_REOPENED = 8


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Open:
    """A start tag, which may stand at many places. An element that cannot have content gets no Close."""

    __slots__ = ("attributes", "closes", "is_void", "name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.is_void = name in VOID
        self.closes = _CLOSED_BY.get(name, ())


class Close(Struct, frozen=True, gc=False):
    name: str


Piece = Open | Close | str  # a text is a string, with its character references resolved


class MarkupTokens(Struct):
    """Tags and texts in the order they are written, nested or not, and comments apart."""

    pieces: list[Piece]
    comments: list[str]
    start_tags: list[Open]  # those that are written alike once


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

_CLOSED_BY = {
    name: ("p",) * (name in ENDS_PARAGRAPH) + CLOSES.get(name, ()) for name in (*ENDS_PARAGRAPH, *CLOSES)
}

_TAG_START = re.compile(r"<[a-zA-Z/!?]")  # any other bracket is text
# What nearly all tags look like. Others are read letter by letter, as browsers do.
_USUAL_TAG = re.compile(
    r"(?:/([a-zA-Z][a-zA-Z0-9]*)\s*+|([a-zA-Z][a-zA-Z0-9]*)"
    r"((?:\s++[a-zA-Z][a-zA-Z0-9:_-]*+(?:=(?:\"[^\"]*+\"|'[^']*+'|[a-zA-Z0-9#%._-]++))?+)*+)\s*+/?)"
)
_USUAL_ATTRIBUTE = re.compile(r"""([a-zA-Z][a-zA-Z0-9:_-]*+)(?:=(?:"([^"]*+)"|'([^']*+)'|([^\s"']++)))?+""")
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


def tokens(html: str) -> MarkupTokens:
    """Brackets divide the whole at once; a tag that goes on beyond the next one is read letter by letter."""
    html = html[:MAX_MARKUP_CHARS]
    first, *parts = html.split("<")
    found = MarkupTokens([unescape(first)] if first else [], [], [])
    add, known = found.pieces.append, dict[str, Open | Close]()
    behind, tags = len(first), 0  # `behind` is where the part ends
    remaining = iter(parts)
    for part in remaining:
        written, closing, text = part.partition(">")
        tag = known.get(written) if closing else None
        begin = behind
        behind += len(part) + 1
        if tag is None:
            usual = _USUAL_TAG.fullmatch(written) if closing else None
            if usual is not None and (usual[2] or "").lower() not in _RAW_END:
                tag = known[written] = _usual_tag(usual)
                if type(tag) is Open:
                    found.start_tags.append(tag)
            else:
                end, tags = _add_unusual(html, begin, found, tags)
                while behind < end:
                    behind += len(next(remaining)) + 1
                text = html[end:behind]
        if tag is not None:
            add(tag)
            tags += 1
        if text:
            add(unescape(text) if "&" in text else text)
        if tags >= MAX_TAGS:
            break
    return found


def _add_unusual(html: str, begin: int, found: MarkupTokens, tags: int) -> tuple[int, int]:
    """Where it ends, and how many tags there are now."""
    piece, raw, end = _unusual(html, begin, found.comments)
    if type(piece) is Open:
        found.start_tags.append(piece)
    if piece is not None:
        found.pieces.append(piece)
        tags += 1
    if raw:
        found.pieces.append(raw)
    return end, tags


def _usual_tag(usual: re.Match[str]) -> Open | Close:
    closed, name, attributes = usual.groups()
    return Close(closed.lower()) if closed else Open(name.lower(), _usual_attributes(attributes))


def _unusual(html: str, start: int, comments: list[str]) -> tuple[Piece | None, str, int]:
    """What begins at a bracket, the raw text behind its start tag, and where it ends."""
    if not _TAG_START.match(html, start):
        return "<", "", start + 1
    tag, end = _after_bracket(html, start)
    if html.startswith("<!--", start):
        comments.append(html[start + 4 : end].removesuffix("-->"))
    if type(tag) is not Open or tag.name not in _RAW_END:
        return tag, "", end
    behind = _raw_end(html, end, tag.name)
    raw = html[end:behind]
    return tag, unescape(raw) if tag.name in ESCAPABLE_RAW else raw, behind


def _usual_attributes(written: str) -> dict[str, str]:
    """The first of equal names counts, as in browsers."""
    attributes: dict[str, str] = {}
    if written:
        for name, double, single, bare in _USUAL_ATTRIBUTE.findall(written):
            value = double or single or bare
            name = name.lower()
            if name not in attributes and len(attributes) < MAX_ATTRIBUTES:
                attributes[name] = unescape(value) if "&" in value else value
    return attributes


def _after_bracket(html: str, start: int) -> tuple[Open | Close | None, int]:
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
    pieces: list[Piece] = []
    nesting = Nesting(pieces.append, lambda element: pieces.append(Close(element.name)))
    for piece in tokens(html).pieces:
        if isinstance(piece, str):
            pieces.append(piece)
        elif isinstance(piece, Open):
            nesting.open(piece)
        else:
            nesting.close(piece.name)
        yield from pieces
        pieces.clear()
    nesting.close_all()
    yield from pieces


class Nesting:
    """The open elements, with the places of each name, so that no question needs a walk down the stack.

    Tells of every element when it opens and, if it can have content, when it closes.
    """

    def __init__(self, opened: Callable[[Open], object], closed: Callable[[Open], object]) -> None:
        self._opened = opened
        self._closed = closed
        self._stack: list[Open] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)

    def open(self, element: Open) -> None:
        places = self._places
        for name in element.closes:
            if places[name]:
                self._close_if_open(name)
        if not element.is_void:
            stack = self._stack
            places[element.name].append(len(stack))
            stack.append(element)
        self._opened(element)

    def close(self, name: str) -> None:
        stack = self._stack
        if stack and stack[-1].name == name:
            self._places[name].pop()
            self._closed(stack.pop())
        elif name == "br":
            self._opened(Open("br", {}))
        else:
            self._close_if_open(name)

    def close_all(self) -> None:
        while self._stack:
            self._closed(self._pop())

    def _close_if_open(self, name: str) -> None:
        place = self._last(name)
        if place < 0 or self._is_behind_barrier(name, place):
            return
        survivors: list[Open] = []
        while len(self._stack) > place + 1:
            element = self._pop()
            self._closed(element)
            if element.name in FORMATTING:
                survivors.append(element)
        self._closed(self._pop())
        if name not in CELLS and name != "tr":
            self._reopen(survivors)

    def _reopen(self, survivors: list[Open]) -> None:
        """Formatting that was not closed goes on behind the end of its block, as browsers show it."""
        for element in reversed(survivors[-MAX_REOPENED:]):
            self._push(element)
            self._opened(element)

    def _is_behind_barrier(self, name: str, place: int) -> bool:
        if place == len(self._stack) - 1:
            return False
        return any(self._last(barrier) > place for barrier in BARRIERS.get(name, CELLS))

    def _last(self, name: str) -> int:
        places = self._places.get(name)
        return places[-1] if places else -1

    def _push(self, element: Open) -> None:
        self._places[element.name].append(len(self._stack))
        self._stack.append(element)

    def _pop(self) -> Open:
        element = self._stack.pop()
        self._places[element.name].pop()
        return element
