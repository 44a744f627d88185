"""One walk over HTML: its text as a reader sees it, its links, and what it holds beside."""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote

from msgspec import Struct

from postroom.mail.html.css import conditions
from postroom.mail.html.css.selectors import PlacedElement
from postroom.mail.html.layout import BLOCKS, LAID_OUT, SIMPLE_BLOCKS, TextPage
from postroom.mail.html.look import Look
from postroom.mail.html.markup import MarkupTokens, Nesting, Open, Piece, tokens
from postroom.mail.html.visibility import ElementKind, Wardrobe

MAX_ASIDE_CHARS = 20_000
MAX_ANCHORS = 2_000
REACH_BEFORE = 160
REACH_BEHIND = 80
MAX_LABEL_CHARS = 200
FEWEST_SPOKEN_CHARS = 12

_UNSPOKEN = ("script", "style")
_STYLING = ("style", "link")
_SPOKEN = ("alt", "title", "aria-label", "content")
_DOCTYPE = re.compile(r"\s*+(?:<!--(?:(?!-->).){0,2000}+-->\s*+)?<!doctype", re.IGNORECASE | re.DOTALL)
_HTML, _BODY, _TBODY = Open("html", {}), Open("body", {}), Open("tbody", {})  # written or not


class Anchor:
    """A link as it stands in the mail: its target, its label, and the words around it."""

    __slots__ = ("before", "behind", "label", "url")

    def __init__(self, url: str, label: str = "", before: str = "", behind: str = "") -> None:
        self.url = url
        self.label = label
        self.before = before
        self.behind = behind


class HiddenText(Struct, frozen=True):
    """Text that a reader does not see, and how much stands before it that he does."""

    text: str
    chars_before: int
    is_doubtful: bool = False


class HtmlPage(Struct, frozen=True):
    """What HTML says. The text still has its characters that show nothing."""

    text: str
    anchors: list[Anchor]
    hidden: list[HiddenText]
    aside: list[str]  # comments, and descriptions in attributes


NO_PAGE = HtmlPage("", [], [], [])


def read_page(html: str) -> HtmlPage:
    if not html:
        return NO_PAGE
    found = tokens(html)
    wardrobe = Wardrobe(is_old_page=_DOCTYPE.match(html) is None)
    if any(tag.name in _STYLING for tag in found.start_tags):
        for css in style_sheets(found.pieces):
            wardrobe.sheet.read(css)
        wardrobe.forget_impossible(found.start_tags)
    walk = _Walk(wardrobe, found)
    walk.over_all()
    return HtmlPage(walk.page.text(), walk.anchors, walk.hidden_texts(), walk.aside + found.comments)


def style_sheets(pieces: list[Piece]) -> Iterator[str]:
    """Of those that hold for screens."""
    for place, piece in enumerate(pieces):
        if type(piece) is not Open or piece.name not in _STYLING:
            continue
        attributes = piece.attributes
        kind = attributes.get("type", "").strip().lower()
        if kind not in ("", "text/css") or conditions.holds_media(attributes.get("media", "")) is False:
            continue
        if piece.name == "link":
            if "stylesheet" in attributes.get("rel", "").lower().split():
                yield _sheet_in_address(attributes.get("href", ""))
        elif place + 1 < len(pieces) and type(sheet := pieces[place + 1]) is str:
            yield sheet


def _sheet_in_address(url: str) -> str:
    """Of `data:text/css,…`; others are not loaded from a mail."""
    head, comma, content = url.strip().partition(",")
    if not comma or not head.lower().startswith("data:text/css"):
        return ""
    if not head.lower().endswith(";base64"):
        return unquote(content)
    try:
        return base64.b64decode(unquote(content), validate=False).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


class _Element:
    """An element in the page. Those that nothing tells apart, neither declared nor around them, are one."""

    __slots__ = ("attributes", "before", "breaks", "children", "classes", "counts", "identity", "inner",
                 "last", "look", "name", "number", "number_of_type", "outer", "parent", "tagged",
                 "tbody")  # fmt: skip

    def __init__(self, kind: ElementKind, outer: "_Element | None", parent: "_Element | None") -> None:
        self.name = kind.name
        self.attributes = kind.attributes
        self.classes = kind.classes
        self.identity = kind.identity
        self.parent: PlacedElement | None = parent
        self.outer = outer if outer is not None else self  # where the walk goes on behind its end
        self.before: PlacedElement | None = None
        self.number = self.number_of_type = 1
        self.breaks = 0  # before and behind it, if that is all it does to the text
        self.inner: dict[ElementKind, _Element] = {}
        self.tagged: dict[Open, _Element] = {}  # the same, by what is written
        self.children = 0
        self.counts: dict[str, int] = {}
        self.last: _Element | None = None
        self.tbody: _Element | None = None
        self.look: Look

    def count_among(self, parent: "_Element") -> None:
        parent.children += 1
        parent.counts[self.name] = parent.counts.get(self.name, 0) + 1
        self.number, self.number_of_type = parent.children, parent.counts[self.name]
        self.before, parent.last = parent.last, self


class _Walk:
    def __init__(self, wardrobe: Wardrobe, found: MarkupTokens) -> None:
        self.wardrobe = wardrobe
        self.pieces = found.pieces
        self.start_tags = found.start_tags
        self.page = TextPage()
        self.anchors: list[Anchor] = []
        self.aside: list[str] = []
        self.aside_chars = 0
        self.hidden: list[tuple[list[str], int, bool]] = []
        self.hidden_after = -1  # so many parts were written when text was hidden last
        self.anchor: Anchor | None = None
        self.is_in_anchor = False
        self.spoken: list[str] = []  # the texts behind the last link
        self.nesting = Nesting(self.opened, self.closed)
        self.body = self._outermost()
        self.element = self.body

    def _outermost(self) -> _Element:
        """A page has its outermost elements, written or not."""
        written = {tag.name for tag in self.start_tags} if self.wardrobe.has_rules else ()
        look, outer = self.wardrobe.bare_page(), None
        for tag in (_HTML, _BODY):
            element = _Element(self.wardrobe.kind(tag), None, outer)
            is_written = not self.wardrobe.has_rules or tag.name in written
            element.look = look if is_written else self.wardrobe.dress(tag, look, element)
            look, outer = element.look, element
        return element

    def over_all(self) -> None:
        open_one, close_one, write = self.nesting.open, self.nesting.close, self.write
        is_unspoken = False
        for piece in self.pieces:
            if isinstance(piece, str):
                if not is_unspoken:
                    write(piece)
            elif isinstance(piece, Open):
                is_unspoken = piece.name in _UNSPOKEN
                open_one(piece)
            else:
                is_unspoken = False
                close_one(piece.name)
                if piece.name == "a" and self.is_in_anchor:
                    self.is_in_anchor, self.spoken = False, []
        self._end_anchor()
        self.nesting.close_all()

    def opened(self, tag: Open) -> None:
        if tag.name == "br":
            self.page.open(tag)
            return
        outer = self.element
        element = outer.tagged.get(tag) or self._find(outer, tag)
        if not tag.is_void:
            self.element = element
        if element.breaks:
            if self.page.breaks < element.breaks:
                self.page.breaks = element.breaks
        elif tag.name in LAID_OUT:
            if not element.look.removed:
                self.page.open(tag)
        elif tag.attributes:
            self._opened_other(tag, element.look)

    def _find(self, outer: _Element, tag: Open) -> _Element:
        kind = self.wardrobe.kind(tag)
        element = outer.inner.get(kind) or self._entered(outer, tag, kind)
        if not self.wardrobe.sheet.asks_siblings:
            outer.tagged[tag] = element
        return element

    def _entered(self, outer: _Element, tag: Open, kind: ElementKind) -> _Element:
        parent, look = outer, outer.look
        if self.wardrobe.has_rules:
            parent, look = self._parent(outer, tag)
        element = _Element(kind, outer, parent)
        if self.wardrobe.sheet.asks_siblings:
            element.count_among(parent)
        else:
            outer.inner[kind] = element
        element.look = self.wardrobe.dress(tag, look, element)
        if not element.look.removed:
            element.breaks = SIMPLE_BLOCKS.get(tag.name, 0)
        return element

    def _parent(self, outer: _Element, tag: Open) -> tuple[_Element, Look]:
        """As selectors see it: rows stand in the body of a table, and all else in that of the page."""
        if tag.name == "tr" and outer.name == "table":
            if outer.tbody is None:
                outer.tbody = _Element(self.wardrobe.kind(_TBODY), outer, outer)
                outer.tbody.look = self.wardrobe.dress(_TBODY, outer.look, outer.tbody)
            return outer.tbody, outer.tbody.look
        if outer.name in ("html", "head") and tag.name not in ("html", "head", "body"):
            return self.body, outer.look
        return outer, outer.look

    def _opened_other(self, tag: Open, look: Look) -> None:
        name, attributes = tag.name, tag.attributes
        if name == "a" or name == "area":
            if "href" in attributes:
                self._link(attributes["href"], attributes.get("title", ""), is_open=name == "a")
        elif name == "img":
            self._picture(attributes, look)
        if (
            "alt" in attributes
            or "title" in attributes
            or "aria-label" in attributes
            or "content" in attributes
        ):
            self._note_spoken(attributes)

    def _note_spoken(self, attributes: dict[str, str]) -> None:
        for name in _SPOKEN:
            said = attributes.get(name, "")
            if len(said) >= FEWEST_SPOKEN_CHARS and self.aside_chars < MAX_ASIDE_CHARS:
                self.aside.append(said[:1_000])
                self.aside_chars += min(len(said), 1_000)

    def _link(self, url: str, title: str, is_open: bool) -> None:
        self._end_anchor()
        if len(self.anchors) >= MAX_ANCHORS:
            self.anchor = None
            return
        self.anchor = Anchor(url, title, "" if self.is_in_anchor else self._words_before())
        self.anchors.append(self.anchor)
        self.is_in_anchor, self.spoken = is_open, []

    def _end_anchor(self) -> None:
        """The first words behind the last link, as far as the next one."""
        if self.anchor is None or self.is_in_anchor:
            return
        for text in self.spoken:
            self.anchor.behind += text[:REACH_BEHIND]
            if len(self.anchor.behind) >= REACH_BEHIND:
                return

    def _words_before(self) -> str:
        """The last words before a link, back to the one before it."""
        words = ""
        for text in reversed(self.spoken):
            words = text + words
            if len(words) >= REACH_BEFORE:
                return words[-REACH_BEFORE:]
        return words

    def _picture(self, attributes: dict[str, str], look: Look) -> None:
        alternative = attributes.get("alt", "").strip()
        if self.is_in_anchor and self.anchor is not None:
            self.anchor.label = f"{self.anchor.label} {attributes.get('alt', '')}"[:MAX_LABEL_CHARS]
        sizes = (attributes.get("width"), attributes.get("height"))
        if alternative and look.is_seen and not any(size in ("0", "1") for size in sizes):
            self._show(f"[{alternative}]", look)

    def closed(self, tag: Open) -> None:
        element = self.element
        self.element = element.outer
        if element.breaks:
            if self.page.breaks < element.breaks:
                self.page.breaks = element.breaks
        elif tag.name in BLOCKS and not element.look.removed:
            self.page.close(tag.name)

    def write(self, data: str) -> None:
        self.spoken.append(data)
        look = self.element.look
        if look.is_seen:
            if look.doubt or self.page.is_doubtful:
                self._show(data, look)
            else:
                self.page.write(data)
        elif not data.isspace():
            self._hide(data, is_doubtful=False)
        if self.is_in_anchor and self.anchor is not None and len(self.anchor.label) < MAX_LABEL_CHARS:
            self.anchor.label = f"{self.anchor.label}{data}"[:MAX_LABEL_CHARS]

    def _show(self, data: str, look: Look) -> None:
        if look.doubt != self.page.is_doubtful and not data.isspace():
            self.page.doubt(look.doubt)
        self.page.write(data)
        if look.doubt and not data.isspace():
            self._hide(data, is_doubtful=True)

    def _hide(self, data: str, is_doubtful: bool) -> None:
        after = -2 if is_doubtful else len(self.page.parts)
        if self.hidden and after == self.hidden_after and self.hidden[-1][2] == is_doubtful:
            self.hidden[-1][0].append(data)
        else:
            self.hidden.append(([data], self.page.chars, is_doubtful))
        self.hidden_after = after

    def hidden_texts(self) -> list[HiddenText]:
        return [
            HiddenText(" ".join("".join(parts).split()), before, is_doubtful)
            for parts, before, is_doubtful in self.hidden
        ]
