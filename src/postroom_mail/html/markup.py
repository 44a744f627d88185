"""HTML as tags and texts, read in one pass.

Tree builders that follow the HTML standard copy open formatting elements into every new paragraph, so that
80 kB of markup can cost gigabytes; this reader takes linear time and memory.
"""

import html as entities
import re
from functools import lru_cache

from msgspec import Struct

MAX_MARKUP_CHARS = 1_000_000
MAX_TAGS = 50_000
MAX_ATTRIBUTES = 64
# Most tags are in many emails.
REMEMBERED_TAGS = 1_024
MAX_REMEMBERED_CHARS = 300


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Open:
    """A start tag. It is shared between positions and emails, and must not be changed.

    An element that cannot have content gets no Close.
    """

    __slots__ = ("attributes", "closes", "is_void", "key", "name")

    def __init__(self, name: str, attributes: dict[str, str], key: object = None) -> None:
        self.name = name
        self.attributes = attributes
        self.is_void = name in VOID
        self.closes = _CLOSED_BY.get(name, ())
        self.key = object() if key is None else key  # shared by tags that differ at most in their target

    def leading_to(self, url: str) -> "Open":
        other = _new_open(Open)
        other.name, other.is_void, other.closes, other.key = self.name, self.is_void, self.closes, self.key
        other.attributes = self.attributes.copy()
        other.attributes["href"] = unescape(url) if "&" in url else url
        return other


_new_open = Open.__new__


class Close:
    __slots__ = ("key", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.key = f"/{name}"


Tag = Open | Close
Piece = Tag | str  # a text is a string, with its character references resolved
NO_TAG = Close("")


class MarkupTokens(Struct):
    """Tags in written order, nested or not, each with the text after it; comments separately."""

    pairs: list[tuple[Tag, str]]
    comments: list[str]
    start_tags: list[Open]  # identical ones only once
    sheets: list[tuple[Open, str]]  # `style` and `link`, with their content
    links: list[Open]  # like one of `start_tags`, except for the target

    def separate_links(self) -> None:
        for link in self.links:
            link.key = object()


VOID = names("area base br col embed hr img input link meta param source track wbr")
RAW = names("script style iframe noembed noframes xmp")
ESCAPABLE_RAW = frozenset({"textarea", "title"})
STYLING = frozenset({"style", "link"})
_ASKED = RAW | ESCAPABLE_RAW | STYLING
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
_CLOSED_BY = {
    name: ("p",) * (name in ENDS_PARAGRAPH) + CLOSES.get(name, ()) for name in (*ENDS_PARAGRAPH, *CLOSES)
}

_TAG_START = re.compile(r"<[a-zA-Z/!?]")  # any other bracket is text
# The form of nearly all tags. Others are read character by character, as browsers do.
_BARE = "[a-zA-Z0-9#%._:/?&=;,+@~-]"
_ATTRIBUTES = rf"(?:\s++[a-zA-Z][a-zA-Z0-9:_-]*+(?>(?:=(?:\"[^\"]*+\"|'[^']*+'|{_BARE}++))?))*+"
_USUAL_TAG = re.compile(rf"(?:/([a-zA-Z][a-zA-Z0-9]*+)\s*+|([a-zA-Z][a-zA-Z0-9]*+)({_ATTRIBUTES})\s*+/?)")
_LINK = 'href="'
_BEFORE_LINK = re.compile(rf"[a-zA-Z][a-zA-Z0-9]*+{_ATTRIBUTES}\s++")
_USUAL_ATTRIBUTE = re.compile(
    r"""([a-zA-Z][a-zA-Z0-9:_-]*+)(?:=(?:"([^"]*+)"|'([^']*+)'|([^\s"']++))|(?!=))"""
)
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:>|\Z|([^\s/>][^\s/>=]*)(?:\s*=\s*("[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>]*))?)"""
)  # or the end of the tag, without a name
_COMMENT_END = re.compile(r"--!?>")
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW | ESCAPABLE_RAW}
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{10,};?")


def unescape(text: str) -> str:
    """Resolve character references; a number too long for any character becomes U+FFFD."""
    if "&" not in text:
        return text
    return entities.unescape(_LONG_REFERENCE.sub("\ufffd", text))


def is_cut(html: str) -> bool:
    """Return whether some of it may not be read: each tag has a bracket."""
    return len(html) > MAX_MARKUP_CHARS or html.count("<") > MAX_TAGS


def tokens(html: str) -> MarkupTokens:
    """Splits at all brackets at once; a tag that contains another bracket is read character by character."""
    html = html[:MAX_MARKUP_CHARS]
    first, *parts = html.split("<")
    found = MarkupTokens([(NO_TAG, unescape(first))] if first else [], [], [], [], [])
    reader, pairs = _TagReader(found), found.pairs
    known, blank = reader.known, dict[str, tuple[Tag, str]]()  # `blank` are parts without a word
    behind, most = len(first), MAX_TAGS + len(pairs)  # `behind` is where the part ends
    remaining = iter(parts)
    for part in remaining:
        begin = behind
        behind += len(part) + 1
        pair = blank.get(part)
        if pair is None:
            written, closing, text = part.partition(">")
            tag = (known.get(written) or reader.read(written)) if closing else None
            if tag is None:
                end = _add_unusual(html, begin, found)
                while behind < end:
                    behind += len(next(remaining)) + 1
                tag, text = NO_TAG, html[end:behind]
                most += 1
            elif not text or text.isspace():
                blank[part] = tag, text
            pair = tag, unescape(text) if "&" in text else text
        pairs.append(pair)
        if len(pairs) >= most:
            break
    return found


class _TagReader:
    """Caches tags that are written alike; links that differ only in their target share the rest."""

    def __init__(self, found: MarkupTokens) -> None:
        self._found = found
        self.known: dict[str, Tag] = {}
        self._links: dict[tuple[str, str], Open] = {}  # by what is before and after the target

    def read(self, written: str) -> Tag | None:
        """Read a tag. None: an unusual tag, or one whose content is needed."""
        tag = self._read_link(written) if _LINK in written else self._read_other(written)
        if tag is not None:
            self.known[written] = tag
        return tag

    def _read_link(self, written: str) -> Tag | None:
        before, _, rest = written.partition(_LINK)
        url, quote, behind = rest.partition('"')
        alike = self._links.get((before, behind))
        if alike is not None and quote:
            link = alike.leading_to(url)
            self._found.links.append(link)
            return link
        tag = _usual_tag(written)
        if isinstance(tag, Open):
            self._found.start_tags.append(tag)
            if quote and _is_before_link(before) and "href" in tag.attributes:
                self._links[before, behind] = tag
        return tag

    def _read_other(self, written: str) -> Tag | None:
        read = _remembered_tag if len(written) <= MAX_REMEMBERED_CHARS else _usual_tag
        tag = read(written)
        if isinstance(tag, Open):
            self._found.start_tags.append(tag)
        return tag


def _usual_tag(written: str) -> Tag | None:
    """Return a usual tag. None: an unusual one, or one whose content is needed."""
    usual = _USUAL_TAG.fullmatch(written)
    if usual is None:
        return None
    closed, name, attributes = usual.groups()
    if closed:
        return Close(closed.lower())
    name = name.lower()
    return None if name in _ASKED else Open(name, _usual_attributes(attributes), written)


_remembered_tag = lru_cache(REMEMBERED_TAGS)(_usual_tag)


def _is_before_link(written: str) -> bool:
    return _BEFORE_LINK.fullmatch(written) is not None and "href" not in written.lower()


def _add_unusual(html: str, begin: int, found: MarkupTokens) -> int:
    """Returns where it ends."""
    tag, text, end = _unusual(html, begin, found.comments)
    if tag is not None:
        found.pairs.append((tag, text))
    if isinstance(tag, Open):
        found.start_tags.append(tag)
        if tag.name in STYLING:
            found.sheets.append((tag, text))
    return end


def _unusual(html: str, start: int, comments: list[str]) -> tuple[Tag | None, str, int]:
    """Return what begins at a bracket, the raw text after its start tag, and where it ends."""
    if not _TAG_START.match(html, start):
        return NO_TAG, "<", start + 1
    tag, end = _after_bracket(html, start)
    if html.startswith("<!--", start):
        comments.append(html[start + 4 : end].removesuffix("-->"))
    if type(tag) is not Open or tag.name not in _RAW_END:
        return tag, "", end
    behind = _raw_end(html, end, tag.name)
    raw = html[end:behind]
    return tag, unescape(raw) if tag.name in ESCAPABLE_RAW else raw, behind


def _usual_attributes(written: str) -> dict[str, str]:
    """Return the attributes. The first of several equal names counts, as in browsers."""
    attributes: dict[str, str] = {}
    if written:
        for name, double, single, bare in _USUAL_ATTRIBUTE.findall(written):
            value = double or single or bare
            name = name.lower()
            if name not in attributes and len(attributes) < MAX_ATTRIBUTES:
                attributes[name] = unescape(value) if "&" in value else value
    return attributes


def _after_bracket(html: str, start: int) -> tuple[Tag | None, int]:
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
    """Return the attributes up to the end of the tag. The first of several equal names counts."""
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(html, position):
        name, value = found.groups()
        if not name:
            return attributes, found.end()
        name = name.lower()
        if name not in attributes and len(attributes) < MAX_ATTRIBUTES:
            attributes[name] = _attribute_value(value)
    return attributes, len(html)


def _attribute_value(written: str | None) -> str:
    if not written:
        return ""
    if written[0] in "\"'":
        return unescape(written[1:].removesuffix(written[0]))
    return unescape(written)


def _raw_end(html: str, position: int, name: str) -> int:
    end = _RAW_END[name].search(html, position)
    return end.start() if end else len(html)
