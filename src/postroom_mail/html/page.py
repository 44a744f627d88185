"""One walk over HTML: its visible text, its links, and its hidden content."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from msgspec import Struct

from postroom_mail.html.css import conditions
from postroom_mail.html.elements import LINKED, MORE, SPOKEN, Covers, Element, Step
from postroom_mail.html.layout import LAID_OUT, SIMPLE_BLOCKS, TextPage
from postroom_mail.html.look import Look
from postroom_mail.html.markup import MarkupTokens, Open, Tag, tokens
from postroom_mail.html.nesting import FORMATTING, Nesting
from postroom_mail.html.visibility import ComputedStyles, ElementKind

MAX_ASIDE_CHARS = 20_000
MAX_ANCHORS = 2_000
WINDOW_BEFORE = 160
WINDOW_BEHIND = 80
MAX_LABEL_CHARS = 200
LEAST_SPOKEN_CHARS = 12

_BLANKS = frozenset({" ", "\n", "\r\n"})  # most of what is between tags
_UNSPOKEN = ("script", "style")
_DOCTYPE = re.compile(r"\s*+(?:<!--(?:(?!-->).){0,2000}+-->\s*+)?<!doctype", re.IGNORECASE | re.DOTALL)
_HTML, _BODY, _TBODY = Open("html", {}), Open("body", {}), Open("tbody", {})  # written or not
_BR = Open("br", {})


class Anchor:
    """A link in the email: its target, its label, and the words around it."""

    __slots__ = ("label", "texts_before", "texts_behind", "url")

    def __init__(self, url: str, label: str, texts_before: list[str], texts_behind: list[str]) -> None:
        self.url = url
        self.label = label
        self.texts_before = texts_before
        self.texts_behind = texts_behind

    @property
    def before(self) -> str:
        """The last words before the link, back to the previous link."""
        words = ""
        for text in reversed(self.texts_before):
            words = text + words
            if len(words) >= WINDOW_BEFORE:
                return words[-WINDOW_BEFORE:]
        return words

    @property
    def behind(self) -> str:
        """The first words after the link, up to the next link."""
        words = ""
        for text in self.texts_behind:
            words += text[:WINDOW_BEHIND]
            if len(words) >= WINDOW_BEHIND:
                break
        return words


class HiddenText(Struct, frozen=True):
    """Text that a reader does not see, and how much visible text is before it."""

    text: str
    chars_before: int
    is_doubtful: bool = False


class HtmlPage(Struct, frozen=True):
    """The content of HTML. The text still has its invisible characters."""

    text: str
    anchors: list[Anchor]
    hidden: list[HiddenText]
    aside: list[str]  # comments, and descriptions in attributes


NO_PAGE = HtmlPage("", [], [], [])


def read_page(html: str) -> HtmlPage:
    if not html:
        return NO_PAGE
    found = tokens(html)
    styles = ComputedStyles(is_old_page=_DOCTYPE.match(html) is None)
    if found.sheets:
        for css in style_sheets(found.sheets):
            styles.sheet.read(css)
        styles.forget_impossible(found.start_tags)
        if styles.sheet.asks_attributes:
            found.separate_links()
    walk = _Walk(styles, found)
    walk.over_all()
    return HtmlPage(walk.page.text(), walk.anchors, walk.hidden_texts(), walk.aside + found.comments)


def style_sheets(tags: Iterable[tuple[Open, str]]) -> Iterator[str]:
    """Yield the style sheets that apply to screens."""
    for tag, content in tags:
        attributes = tag.attributes
        kind = attributes.get("type", "").strip().lower()
        if kind not in ("", "text/css") or conditions.holds_media(attributes.get("media", "")) is False:
            continue
        if tag.name == "style":
            yield content
        elif "stylesheet" in attributes.get("rel", "").lower().split():
            yield _sheet_in_address(attributes.get("href", ""))


def _sheet_in_address(url: str) -> str:
    """Return the content of `data:text/css,…`; other addresses are not loaded."""
    head, comma, content = url.strip().partition(",")
    if not comma or not head.lower().startswith("data:text/css"):
        return ""
    if not head.lower().endswith(";base64"):
        return unquote(content)
    try:
        return base64.b64decode(unquote(content), validate=False).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


class _Walk:
    """Walks from element to element. A repeated step is cached, and costs one look-up.

    The nesting gets cached steps only when it has to decide about another one.
    """

    def __init__(self, styles: ComputedStyles, found: MarkupTokens) -> None:
        self.styles = styles
        self.pairs = found.pairs
        self.start_tags = found.start_tags
        self.page = TextPage()
        self.anchors: list[Anchor] = []
        self.aside: list[str] = []
        self.aside_chars = 0
        self.hidden: list[tuple[list[str], int, bool]] = []
        self.covers = Covers()
        self.hidden_after = -1  # how many parts were written when text was last hidden
        self.anchor: Anchor | None = None
        self.is_in_anchor = False
        self.spoken: list[str] = []  # the texts after the last link
        self.nesting = Nesting(self.opened, self.closed)
        self.body = self._outermost()
        self.element = self.nested_to = self.body

    def _outermost(self) -> Element:
        """Return the outermost element. A page has its outermost elements, written or not."""
        written = {tag.name for tag in self.start_tags} if self.styles.has_rules else ()
        look, outer = self.styles.bare_page(), None
        for tag in (_HTML, _BODY):
            kind = self.styles.kind(tag)
            element = Element(tag, kind, None, outer)
            is_written = not self.styles.has_rules or tag.name in written
            element.look = look if is_written else self.styles.compute(kind, look, element)
            look, outer = element.look, element
        return element

    def over_all(self) -> None:
        page, element = self.page, self.element
        for tag, text in self.pairs:
            step = element.steps.get(tag.key)
            if step is None:
                self.element = element
                self._find_way(tag)
                element = self.element
                if isinstance(tag, Open) and tag.name in _UNSPOKEN:
                    continue
            else:
                element, effect, look = step
                if effect == MORE:
                    self._act(tag, element, look)
                elif page.breaks < effect:
                    page.breaks = effect
            if text in _BLANKS and not page.preformatted and not self.is_in_anchor:
                self.spoken.append(text)
                page.space = page.space or element.look.is_seen
            elif text:
                self._write(text, self.covers.look_of(element) if self.covers.covered else element.look)
        self._end_anchor()

    def _find_way(self, tag: Tag) -> None:
        before = self.element
        if self.nested_to is not before:
            self._catch_up()
        if isinstance(tag, Open):
            self.nesting.open(tag)
        else:
            self.nesting.close(tag.name)
            if tag.name == "a":
                self._end_link()
        self.nested_to = self.element
        if not self.styles.sheet.asks_siblings and (step := self._step(before, tag)) is not None:
            before.steps[tag.key] = step

    def _catch_up(self) -> None:
        """Tells the nesting of the elements left and entered since the last time."""
        old, new, entered = self.nested_to, self.element, list[Element]()
        while old is not new:
            if old.depth < new.depth:
                entered.append(new)
                new = new.outer
            else:
                self.nesting.pop()
                old = old.outer
        for element in reversed(entered):
            self.nesting.push(element)

    def _step(self, before: Element, tag: Tag) -> Step | None:
        """Return the step, if the tag did nothing but open or close one element, or nothing at all."""
        after = self.element
        if isinstance(tag, Open):
            if tag.name == "br":
                return before, MORE, before.look
            element = after if not tag.is_void else self._find(before, tag)
            if after is before or after.outer is before:
                return after, element.effect_of_start(tag), element.look
        elif after is before:
            return before, MORE if tag.name in ("a", "br") else 0, before.look
        elif after is before.outer and before.name == tag.name:
            return after, MORE if tag.name == "a" else before.effect_of_end(), before.look
        return None

    def _act(self, tag: Tag, element: Element, look: Look) -> None:
        """Applies a known step to the page."""
        if isinstance(tag, Open):
            if not tag.is_void:
                element.tag = tag
            self._start(tag, look, element)
        elif tag.name == "a":
            self._end_link()
        elif tag.name == "br":
            self.page.open(_BR)
        else:
            self.page.close(tag.name)

    def opened(self, tag: Open) -> Element:
        if tag.name == "br":
            self.page.open(tag)
            return self.element
        element = self._find(self.element, tag)
        if not tag.is_void:
            element.tag = tag
            self.element = element
        effect = element.effect_of_start(tag)
        if effect == MORE:
            self._start(tag, element.look, element)
        elif self.page.breaks < effect:
            self.page.breaks = effect
        return element

    def closed(self, element: Element) -> Open:
        self.element = element.outer
        effect = element.effect_of_end()
        if effect == MORE:
            self.page.close(element.name)
        elif self.page.breaks < effect:
            self.page.breaks = effect
        return element.tag

    def _find(self, outer: Element, tag: Open) -> Element:
        kind = self.styles.kind(tag)
        key = tag.key if tag.name in FORMATTING else kind
        element = outer.inner.get(key)
        if element is None:
            element = self._entered(outer, tag, kind)
            if not self.styles.sheet.asks_siblings:
                outer.inner[key] = element
        return element

    def _entered(self, outer: Element, tag: Open, kind: ElementKind) -> Element:
        parent, look = outer, outer.look
        if self.styles.has_rules:
            parent, look = self._parent(outer, tag)
        element = Element(tag, kind, outer, parent)
        if self.styles.sheet.asks_siblings:
            element.count_among(parent)
        element.look = self.styles.compute(kind, look, element)
        if not element.look.removed:
            element.breaks = SIMPLE_BLOCKS.get(tag.name, 0)
        return element

    def _parent(self, outer: Element, tag: Open) -> tuple[Element, Look]:
        """Return the parent as selectors see it: rows are in the table's body, all else in the page's."""
        if tag.name == "tr" and outer.name == "table":
            if outer.tbody is None:
                kind = self.styles.kind(_TBODY)
                outer.tbody = Element(_TBODY, kind, outer, outer)
                outer.tbody.look = self.styles.compute(kind, outer.look, outer.tbody)
            return outer.tbody, outer.tbody.look
        if outer.name in ("html", "head") and tag.name not in ("html", "head", "body"):
            return self.body, outer.look
        return outer, outer.look

    def _start(self, tag: Open, look: Look, element: Element) -> None:
        name, attributes = tag.name, tag.attributes
        if look.is_placed and not tag.is_void:
            self._place(element)
        if name in LAID_OUT:
            self.page.open(tag)
            return
        if name in LINKED and "href" in attributes:
            self._link(attributes["href"], attributes.get("title", ""), is_open=name == "a")
        elif name == "img" and attributes:
            self._picture(attributes, look)
        if not attributes.keys().isdisjoint(SPOKEN):
            self._record_spoken(attributes)

    def _place(self, element: Element) -> None:
        """Puts the text in doubt that a cover lies over."""
        page = self.page
        found = self.covers.begin(element, len(page.parts), page.chars)
        if found is None:
            return
        if page.is_doubtful:
            page.doubt(False)
        if text := page.doubt_since(found[0]):
            self.hidden.append(([text], found[1], True))
            self.hidden_after = -2
        self.covers.doubted_to = len(page.parts)

    def _record_spoken(self, attributes: dict[str, str]) -> None:
        for name in SPOKEN:
            said = attributes.get(name, "")
            if len(said) >= LEAST_SPOKEN_CHARS and self.aside_chars < MAX_ASIDE_CHARS:
                self.aside.append(said[:1_000])
                self.aside_chars += min(len(said), 1_000)

    def _link(self, url: str, title: str, is_open: bool) -> None:
        self._end_anchor()
        before = [] if self.is_in_anchor else self.spoken
        self.spoken = []
        if len(self.anchors) >= MAX_ANCHORS:
            self.anchor = None
            return
        self.anchor = Anchor(url, title, before, [])
        self.anchors.append(self.anchor)
        self.is_in_anchor = is_open

    def _end_anchor(self) -> None:
        if self.anchor is not None and not self.is_in_anchor:
            self.anchor.texts_behind = self.spoken

    def _end_link(self) -> None:
        if self.is_in_anchor:
            self.is_in_anchor, self.spoken = False, []

    def _picture(self, attributes: dict[str, str], look: Look) -> None:
        alternative = attributes.get("alt", "").strip()
        if self.is_in_anchor and self.anchor is not None:
            self.anchor.label = f"{self.anchor.label} {attributes.get('alt', '')}"[:MAX_LABEL_CHARS]
        sizes = (attributes.get("width"), attributes.get("height"))
        if alternative and look.is_seen and not any(size in ("0", "1") for size in sizes):
            self._show(f"[{alternative}]", look)

    def _write(self, data: str, look: Look) -> None:
        self.spoken.append(data)
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
