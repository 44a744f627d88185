"""HTML paragraphs, lists, quotes and tables as lines of plain text."""

import re

from msgspec import Struct, field

from postroom_mail.html.markup import Open, names

MAX_PREFIX_DEPTH = 8
# Around text that may or may not be visible.
DOUBT, END_OF_DOUBT = "[perhaps hidden: ", "]"

PARAGRAPHS = names("p h1 h2 h3 h4 h5 h6 blockquote pre ul ol dl table figure")
BLOCKS = PARAGRAPHS | names(
    "address article aside body caption center dd details dialog div dt fieldset figcaption footer form "
    "header hr legend li main menu nav option section summary tbody tfoot thead tr"
)
CELLS = frozenset({"td", "th"})
LISTS = frozenset({"ul", "ol", "menu", "dir"})
LAID_OUT = BLOCKS | CELLS | {"br"}
# The breaks around elements that do nothing else to the text.
SIMPLE_BLOCKS = {
    name: 2 if name in PARAGRAPHS else 1 for name in BLOCKS - LISTS - {"li", "blockquote", "pre", "hr"}
}

_BLANKS = " \t\r\n\f"
_SPACES = re.compile(r"[ \t\r\n\f]+")


class TextPage(Struct):
    """Text under construction: breaks, list marks and quote marks are written only before the next word."""

    parts: list[str] = field(default_factory=list)
    breaks: int = 0
    space: bool = False
    cell: bool = False
    mark: str = ""
    quotes: int = 0
    preformatted: int = 0
    lists: list[int | None] = field(default_factory=list)
    opening: str = ""  # the mark of a doubt that no word has followed yet
    is_doubtful: bool = False
    chars: int = 0

    def write(self, data: str) -> None:
        if self.preformatted:
            self._write_lines(data.replace("\r\n", "\n"))
            return
        core = data.strip(_BLANKS)
        if not core:
            if data:
                self.space = True
            return
        if core[0] != data[0]:
            self.space = True
        is_single_spaced = "  " not in core and core.isprintable()
        self._put(core if is_single_spaced else _SPACES.sub(" ", core))
        self.space = core[-1] != data[-1]

    def doubt(self, is_doubtful: bool) -> None:
        """Marks the beginning or the end of text that may be invisible."""
        if is_doubtful:
            self.opening = DOUBT
        elif self.opening:
            self.opening = ""
        else:
            self.parts.append(END_OF_DOUBT)
        self.is_doubtful = is_doubtful

    def doubt_since(self, start: int) -> str:
        """Marks the text from this part on, which was written as visible, and returns it."""
        words = (number for number in range(start, len(self.parts)) if not self.parts[number].isspace())
        if (first := next(words, None)) is None:
            return ""
        text = "".join(self.parts[first:])
        self.parts[first] = DOUBT + self.parts[first]
        self.parts.append(END_OF_DOUBT)
        return text

    def _write_lines(self, data: str) -> None:
        for number, line in enumerate(data.split("\n")):
            if number:
                self.breaks += 1
            if line:
                self._put(line)

    def _put(self, text: str) -> None:
        parts = self.parts
        if self.breaks or not parts:
            parts.append("\n" * self.breaks if parts else "")
            if self.lists or self.quotes or self.mark:
                parts.append(self._prefix())
                self.mark = ""
            self.breaks = 0
        elif self.cell:
            parts.append("\t")
        elif self.space:
            parts.append(" ")
        if self.opening:
            parts.append(self.opening)
            self.opening = ""
        parts.append(text)
        self.chars += len(text)
        self.space = self.cell = False

    def _prefix(self) -> str:
        depth = len(self.lists) if self.mark else len(self.lists) + 1
        indent = "  " * min(depth - 1, MAX_PREFIX_DEPTH) if self.lists else ""
        return "> " * min(self.quotes, MAX_PREFIX_DEPTH) + indent + self.mark

    def open(self, element: Open) -> None:
        name = element.name
        if name == "br":
            self.breaks = min(self.breaks + 1, 2)
        elif name in CELLS:
            self.cell = bool(self.parts) and not self.breaks
        elif name == "hr":
            self._rule()
        elif name in BLOCKS:
            self._break_before(name)
            self._enter(element)

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
        if self.is_doubtful:
            self.doubt(False)
        text = "".join(self.parts).replace("\u00a0", " ")
        if " \n" in text or "\t\n" in text:
            text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
        return text.strip("\n").rstrip(" \t")


def _first_number(element: Open) -> int:
    start = element.attributes.get("start", "")
    return int(start) if start.isdecimal() and len(start) < 7 else 1
