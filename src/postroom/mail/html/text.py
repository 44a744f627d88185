"""Readable text of HTML mail, without what a reader would not see, and HTML that is safe to show."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from postroom.mail.html.markup import VOID, Open, Piece, Text, names, nested
from postroom.mail.html.styles import is_for_screens
from postroom.mail.html.visibility import Look, Wardrobe

MAX_PREFIX_DEPTH = 8

PARAGRAPHS = names("p h1 h2 h3 h4 h5 h6 blockquote pre ul ol dl table figure")
BLOCKS = PARAGRAPHS | names(
    "address article aside body caption center dd details dialog div dt fieldset figcaption footer form "
    "header hr legend li main menu nav option section summary tbody tfoot thead tr"
)
CELLS = frozenset({"td", "th"})
LISTS = frozenset({"ul", "ol", "menu", "dir"})
HTML_NAMES = names(
    "a abbr address article aside b big blockquote body br button caption center cite code col dd del div "
    "dl dt em fieldset figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i img input ins kbd "
    "label li link main mark meta nav ol p pre q s samp section small span strike strong style sub sup "
    "table tbody td tfoot th thead title tr tt u ul var video"
)

_TAG = re.compile(r"<(?:/?([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)|!(doctype)\s++html[^<>]*+)>", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f]+")
# Line breaks and tabs stay.
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
# A single joiner between two letters shapes words in Persian or Hindi, and holds emoji together.
_JOINED = r"(?<=[^\x00-\x7f" + _INVISIBLE + r"])[\u200c\u200d](?=[^\x00-\x7f" + _INVISIBLE + r"])"
_HIDDEN_CHARACTER = re.compile(rf"({_JOINED})|[{_INVISIBLE}]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]")


def visible(text: str) -> str:
    """Plain text without characters that show nothing: controls, zero width, tags, marks of direction."""
    if text.isascii():
        return text.encode().translate(None, _CONTROLS).decode()
    return _HIDDEN_CHARACTER.sub(lambda match: match[1] or "", text)


def revealed(text: str) -> str:
    """The same characters as marks that a person sees: ⟨U+200B⟩."""
    if text.isascii():
        return text
    return _HIDDEN_CHARACTER.sub(lambda match: match[1] or f"⟨U+{ord(match[0]):04X}⟩", text)


def looks_like_html(text: str) -> bool:
    """True for at least one real tag; `a <b and c> d` or `<someone@example.com>` is plain text."""
    for tag in _TAG.finditer(text):
        if tag[3]:
            return True
        if tag[1].lower() in HTML_NAMES and (tag[2].strip() in ("", "/") or "=" in tag[2]):
            return True
    return False


def html_to_text(html: str) -> str:
    pieces = list(nested(html))
    page = TextPage()
    looks = [Look()]
    wardrobe = Wardrobe()
    for css in style_sheets(pieces):
        wardrobe.read(css)
    for piece in pieces:
        if isinstance(piece, Text):
            if looks[-1].is_visible:
                page.write(piece.data)
        elif isinstance(piece, Open):
            look = wardrobe.dress(piece, looks[-1])
            if not look.removed:
                page.open(piece, look)
            if piece.name not in VOID:
                looks.append(look)
        elif not looks.pop().removed:
            page.close(piece.name)
    return visible(page.text())


def style_sheets(pieces: list[Piece]) -> Iterator[str]:
    for place, piece in enumerate(pieces):
        if (
            isinstance(piece, Open)
            and piece.name == "style"
            and is_for_screens(piece.attributes.get("media") or "all")
        ):
            sheet = pieces[place + 1]
            if isinstance(sheet, Text):
                yield sheet.data


@dataclass(slots=True)
class TextPage:
    """Text as it is laid out: breaks, list marks and quote marks are held back until a word needs them."""

    parts: list[str] = field(default_factory=list)
    breaks: int = 0
    space: bool = False
    cell: bool = False
    mark: str = ""
    quotes: int = 0
    preformatted: int = 0
    lists: list[int | None] = field(default_factory=list)

    def write(self, data: str) -> None:
        if self.preformatted:
            self._write_lines(data.replace("\r\n", "\n"))
            return
        words = _SPACES.sub(" ", data)
        self.space = self.space or words.startswith(" ")
        if core := words.strip(" "):
            self._put(core)
            self.space = words.endswith(" ")

    def _write_lines(self, data: str) -> None:
        for number, line in enumerate(data.split("\n")):
            if number:
                self.breaks += 1
            if line:
                self._put(line)

    def _put(self, text: str) -> None:
        at_start = not self.parts
        if at_start or self.breaks:
            self.parts.append("" if at_start else "\n" * self.breaks)
            self.parts.append(self._prefix())
        elif self.cell:
            self.parts.append("\t")
        elif self.space:
            self.parts.append(" ")
        self.parts.append(text)
        self.breaks, self.space, self.cell, self.mark = 0, False, False, ""

    def _prefix(self) -> str:
        depth = len(self.lists) if self.mark else len(self.lists) + 1
        indent = "  " * min(depth - 1, MAX_PREFIX_DEPTH) if self.lists else ""
        return "> " * min(self.quotes, MAX_PREFIX_DEPTH) + indent + self.mark

    def open(self, element: Open, look: Look) -> None:
        name = element.name
        if name == "br":
            self.breaks = min(self.breaks + 1, 2)
        elif name == "img":
            self._picture(element, look)
        elif name in CELLS:
            self.cell = bool(self.parts) and not self.breaks
        elif name == "hr":
            self._rule()
        elif name in BLOCKS:
            self._break_before(name)
            self._enter(element)

    def _picture(self, element: Open, look: Look) -> None:
        sizes = (element.attributes.get("width"), element.attributes.get("height"))
        alternative = element.attributes.get("alt", "").strip()
        if alternative and look.is_visible and not any(size in ("0", "1") for size in sizes):
            self.write(f"[{alternative}]")

    def _rule(self) -> None:
        self._break_before("hr")
        if self.parts:
            self._put("---")
        self._break_before("hr")

    def _break_before(self, name: str) -> None:
        is_inner_list = name in LISTS and self.lists
        wanted = 2 if name in PARAGRAPHS and not is_inner_list else 1
        self.breaks = max(self.breaks, wanted)

    def _enter(self, element: Open) -> None:
        if element.name in LISTS:
            self.lists.append(_first_number(element) if element.name == "ol" else None)
        elif element.name == "li":
            self.mark = self._next_mark()
        elif element.name == "blockquote":
            self.quotes += 1
        elif element.name == "pre":
            self.preformatted += 1

    def _next_mark(self) -> str:
        number = self.lists[-1] if self.lists else None
        if number is None:
            return "- "
        self.lists[-1] = number + 1
        return f"{number}. "

    def close(self, name: str) -> None:
        if name in BLOCKS:
            self._leave(name)
            self._break_before(name)

    def _leave(self, name: str) -> None:
        if name in LISTS and self.lists:
            self.lists.pop()
        elif name == "li":
            self.mark = ""
        elif name == "blockquote":
            self.quotes -= 1
        elif name == "pre":
            self.preformatted -= 1

    def text(self) -> str:
        lines = "".join(self.parts).replace("\u00a0", " ").split("\n")
        return "\n".join(line.rstrip(" \t") for line in lines).strip("\n")


def _first_number(element: Open) -> int:
    start = element.attributes.get("start", "")
    return int(start) if start.isdecimal() and len(start) < 7 else 1
