"""The MIME tree of a mail, read in one pass over its bytes: parts, depth and delimiter lines are limited."""

import re

from msgspec import Struct, field

from postroom.mail import headers
from postroom.mail.headers import Headers

MAX_PARTS = 1_000
MAX_DEPTH = 50
MAX_PART_FIELDS = 100
MAX_BOUNDARY_BYTES = 250
# Lines that begin with "--" without being a delimiter; a hostile mail can hold millions.
MAX_DASH_LINES = 300_000

_TYPE = re.compile(r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}\Z", re.ASCII)
# A line break is in no line, so this matches none.
_NO_BOUNDARY = b"\n"
_FIRST_DELIMITER = re.compile(rb"\s{0,20}--([^\r\n]{1,200})\r?\n")


class Part(Struct, frozen=True):
    """A leaf with its encoded body, or a multipart with children."""

    headers: Headers
    content_type: str
    parameters: dict[str, str]
    body: bytes
    children: tuple["Part", ...]

    @property
    def is_multipart(self) -> bool:
        return self.content_type.startswith("multipart/")


class Tree(Struct, frozen=True):
    root: Part
    notes: tuple[str, ...]


def read(raw: bytes, block: headers.Block) -> Tree:
    """The tree of a mail whose header block is already read."""
    reader = _Reader(raw)
    root = _read_part(reader, block, "text/plain")
    return Tree(root, tuple(reader.notes))


class _Reader(Struct):
    """A position in the mail: always at a delimiter line of an open multipart, or at the end."""

    raw: bytes
    open_boundaries: list[bytes] = field(default_factory=list)
    levels: dict[bytes, int] = field(default_factory=dict)
    needle: bytes = b""
    level: int = -1  # index of the multipart whose delimiter this is; -1 at the end
    is_close: bool = False
    line_start: int = 0
    next_line: int = 0
    parts: int = 1
    dash_lines: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def open(self, boundary: bytes) -> int:
        self.open_boundaries.append(boundary)
        self._index()
        return len(self.open_boundaries) - 1

    def close(self) -> None:
        self.open_boundaries.pop()
        self._index()

    def _index(self) -> None:
        self.levels = {boundary: level for level, boundary in enumerate(self.open_boundaries)}
        # Longer needles are found faster; usually one boundary is open.
        self.needle = b"\n--" + (self.open_boundaries[0] if len(self.open_boundaries) == 1 else b"")

    def finish(self) -> None:
        self.level, self.is_close = -1, False
        self.line_start = self.next_line = len(self.raw)

    def advance(self, start: int) -> None:
        """To the next delimiter line at or after `start`, the beginning of a line."""
        found = self.raw.find(self.needle, start - 1) if self.levels else -1
        while found != -1 and self.dash_lines < MAX_DASH_LINES:
            if self._is_delimiter(found + 1):
                return
            self.dash_lines += 1
            found = self.raw.find(self.needle, found + 1)
        if found != -1:
            self.note(f"more than {MAX_DASH_LINES} lines that look like delimiters")
        self.finish()

    def _is_delimiter(self, line_start: int) -> bool:
        line_end = self.raw.find(b"\n", line_start)
        line_end = len(self.raw) if line_end == -1 else line_end
        if line_end - line_start > 2 * MAX_BOUNDARY_BYTES:
            return False
        name = self.raw[line_start + 2 : line_end].rstrip(b" \t\r")
        level, is_close = self.levels.get(name), False
        if level is None and name.endswith(b"--"):
            level, is_close = self.levels.get(name[:-2]), True
        if level is None:
            return False
        self.level, self.is_close, self.line_start = level, is_close, line_start
        self.next_line = min(line_end + 1, len(self.raw))
        return True

    def content_since(self, start: int) -> bytes:
        """The bytes up to here; the line break before a delimiter belongs to it (RFC 2046 section 5.1.1)."""
        end = self.line_start
        if self.level != -1:
            end -= self.raw.endswith(b"\n", start, end)
            end -= self.raw.endswith(b"\r", start, end)
        return self.raw[start:end]


def _read_part(reader: _Reader, block: headers.Block, default_type: str) -> Part:
    """The part after the header block; afterwards the reader is at the delimiter that ends the part."""
    if not block.is_complete:
        reader.note("too many header fields")
    value = block.headers.text("content-type")
    content_type = _content_type(value, default_type)
    parameters = headers.parameters(value)
    if not content_type.startswith("multipart/"):
        reader.advance(block.body_start)
    elif len(reader.open_boundaries) == MAX_DEPTH:
        reader.note(f"more than {MAX_DEPTH} levels of parts")
        reader.advance(block.body_start)
        return Part(block.headers, content_type, parameters, b"", ())
    elif children := _read_children(reader, block.body_start, content_type, parameters):
        return Part(block.headers, content_type, parameters, b"", children)
    else:
        reader.note("a multipart without parts")
        content_type = "text/plain"
    return Part(block.headers, content_type, parameters, reader.content_since(block.body_start), ())


def _read_children(
    reader: _Reader, start: int, content_type: str, parameters: dict[str, str]
) -> tuple[Part, ...]:
    level = reader.open(_boundary(reader, start, parameters))
    default_type = "message/rfc822" if content_type == "multipart/digest" else "text/plain"
    children = []
    reader.advance(start)
    while reader.level == level and not reader.is_close:
        if reader.parts == MAX_PARTS:
            reader.note(f"more than {MAX_PARTS} parts")
            reader.finish()
            break
        reader.parts += 1
        block = headers.split(reader.raw, reader.next_line, MAX_PART_FIELDS)
        children.append(_read_part(reader, block, default_type))
    is_closed = reader.level == level
    reader.close()
    if is_closed:
        reader.advance(reader.next_line)
    return tuple(children)


def _boundary(reader: _Reader, start: int, parameters: dict[str, str]) -> bytes:
    boundary = parameters.get("boundary", "").rstrip().encode()
    if 0 < len(boundary) <= MAX_BOUNDARY_BYTES:
        return boundary
    reader.note("a multipart without a boundary")
    first_line = _FIRST_DELIMITER.match(reader.raw, start)
    return first_line[1].rstrip() if first_line else _NO_BOUNDARY


def _content_type(value: str, default: str) -> str:
    words = value.partition(";")[0].split(None, 1)
    return words[0].lower() if words and _TYPE.match(words[0]) else default
