"""The MIME tree of an email: one walk finds the parts for the API, mail clients, rules and bounces alike.

It reads forward in one pass, over the whole bytes or a stream that is never held whole. Parts, depth and
delimiter lines are limited.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from postroom_mail.mime import headers
from postroom_mail.mime.headers import Headers

MAX_PARTS = 1_000
MAX_DEPTH = 50
MAX_PART_FIELDS = 100
MAX_BOUNDARY_BYTES = 250  # RFC 2046 section 5.1.1 allows 70; some senders write more
# Lines that begin with "--" without being a delimiter; a hostile email can hold millions.
MAX_DASH_LINES = 300_000
NO_HEADERS = Headers({})

# Two restricted names (RFC 6838 section 4.2).
_TYPE = re.compile(r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}\Z", re.ASCII)
# A line break is in no line, so this matches none.
_NO_BOUNDARY = b"\n"
_FIRST_DELIMITER = re.compile(rb"\s{0,20}--([^\r\n]{1,200})(?:\r?\n|\r?\Z)")
_FIRST_DELIMITER_BYTES = 256
_WORTH_DROPPING_BYTES = 256 * 1024


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


class BodyPart(Struct):
    """A part by its positions, from its header to its end; `message` is the email in a message/rfc822."""

    header_start: int
    body_start: int = 0
    end: int = 0
    lines: int = 0
    headers: Headers = NO_HEADERS
    content_type: str = "text/plain"
    parameters: dict[str, str] = field(default_factory=dict)
    children: list["BodyPart"] = field(default_factory=list)
    message: "BodyPart | None" = None

    @property
    def size_bytes(self) -> int:
        return self.end - self.body_start


def read(raw: bytes, block: headers.Block) -> Tree:
    """Return the tree of an email whose header block is already read, with the bytes of its parts."""
    walker = _Walker(_Window(raw, iter(())))
    return Tree(_with_bytes(raw, walker.read_part(0, block, "text/plain", 0)), tuple(walker.notes))


def scan(chunks: Iterable[bytes], trace_bytes: int = 0) -> BodyPart:
    """Return the same tree by positions, from a stream, with the lines of each part.

    The first `trace_bytes` are our own trace, which must not change how the email behind it is read.
    """
    window = _Window(b"", iter(chunks), counts_lines=True)
    walker = _Walker(window)
    return walker.read_part(0, window.split(trace_bytes, headers.MAX_FIELDS), "text/plain", 0)


def _with_bytes(raw: bytes, part: BodyPart) -> Part:
    is_leaf = not part.content_type.startswith("multipart/")
    return Part(
        part.headers,
        part.content_type,
        part.parameters,
        raw[part.body_start : part.end] if is_leaf else b"",
        tuple(_with_bytes(raw, child) for child in part.children),
    )


class _Window:
    """The bytes that are needed around the position reached; all positions count from the first byte."""

    def __init__(self, buffer: bytes, chunks: Iterator[bytes], counts_lines: bool = False) -> None:
        self._buffer = buffer
        self._start = 0  # of the buffer
        self._chunks = chunks
        self._is_open = counts_lines
        self._counts_lines = counts_lines
        self._counted = (0, 0)  # a position, and the lines before it
        self._has_line_feeds = True
        if counts_lines:
            self._load(headers.MAX_HEADER_BYTES)
            self._has_line_feeds = headers.with_line_feeds(self._buffer) is self._buffer
            self._buffer = headers.with_line_feeds(self._buffer)

    @property
    def end(self) -> int:
        return self._start + len(self._buffer)

    def find(self, needle: bytes, position: int) -> int:
        """Return the position, or -1 if it does not follow; then everything was read."""
        while True:
            found = self._buffer.find(needle, max(0, position - self._start))
            if found != -1:
                self._load(self._start + found + 3 * MAX_BOUNDARY_BYTES)
                return found + self._start
            # What is behind is not asked for again, but for a line break that may belong to the needle.
            position = max(position, self.end - len(needle))
            if not self._read_on(position - 2):
                return -1

    def line(self, start: int) -> bytes | None:
        """Return the line at `start` with its break; None if it is too long for a delimiter."""
        at = start - self._start
        end = self._buffer.find(b"\n", at, at + 2 * MAX_BOUNDARY_BYTES + 1)
        if end == -1:
            is_last = len(self._buffer) - at <= 2 * MAX_BOUNDARY_BYTES
            return self._buffer[at:] if is_last else None
        return self._buffer[at : end + 1]

    def ends_with(self, suffix: bytes, start: int, end: int) -> bool:
        return self._buffer.endswith(suffix, max(0, start - self._start), end - self._start)

    def match(self, pattern: re.Pattern[bytes], position: int) -> re.Match[bytes] | None:
        self._load(position + _FIRST_DELIMITER_BYTES)
        return pattern.match(self._buffer, position - self._start)

    def split(self, start: int, max_fields: int) -> headers.Block:
        if start - self._start > _WORTH_DROPPING_BYTES:
            self._drop(start - 2)
        self._load(start + headers.MAX_HEADER_BYTES + 1)
        block = headers.split_lines(self._buffer, start - self._start, max_fields)
        return headers.Block(block.headers, block.body_start + self._start, block.is_complete)

    def lines_before(self, position: int) -> int:
        """Return the number of lines before, counted from the last position asked for, which is near."""
        if not self._counts_lines:
            return 0
        last, lines = self._counted
        low, high = sorted((last - self._start, position - self._start))
        lines += self._buffer.count(b"\n", low, high) * (1 if position > last else -1)
        self._counted = position, lines
        return lines

    def skip_rest(self) -> int:
        while self._read_on(self.end):
            pass
        return self.end

    def _load(self, end: int) -> None:
        pieces = [self._buffer]
        loaded = self.end
        while self._is_open and loaded < end:
            chunk = self._next()
            loaded += len(chunk)
            pieces.append(chunk)
        if len(pieces) > 1:
            self._buffer = b"".join(pieces)

    def _read_on(self, keep_from: int) -> bool:
        """Drops what is before `keep_from`, and reads another chunk; False at the end."""
        if not self._is_open:
            return False
        self._drop(keep_from)
        self._buffer += self._next()
        return True

    def _drop(self, keep_from: int) -> None:
        if not self._counts_lines or keep_from <= self._start:
            return
        if keep_from > self._counted[0]:
            self.lines_before(keep_from)
        self._buffer = self._buffer[keep_from - self._start :]
        self._start = keep_from

    def _next(self) -> bytes:
        chunk = next(self._chunks, None)
        self._is_open = chunk is not None
        return b"" if chunk is None else chunk if self._has_line_feeds else chunk.replace(b"\r", b"\n")


class _Boundary(Struct, frozen=True):
    text: bytes
    emails: int  # how many emails it is inside of


class _Walker:
    """Always at a delimiter line of an open multipart, or at the end."""

    def __init__(self, window: _Window) -> None:
        self.window = window
        self.open_boundaries: list[_Boundary] = []
        self.levels: dict[bytes, int] = {}
        self.needle = b""
        self.level = -1  # index of the multipart whose delimiter this is; -1 at the end
        self.is_close = False
        self.line_start = 0
        self.next_line = 0
        self.parts = 1
        self.dash_lines = 0
        self.notes: list[str] = []

    def record_defect(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def read_part(self, start: int, block: headers.Block, default_type: str, emails: int) -> BodyPart:
        """Return the part after the header block. The walker is then at the delimiter that ends the part."""
        if not block.is_complete:
            self.record_defect("too many header fields")
        value = block.headers.text("content-type")
        part = BodyPart(start, block.body_start, headers=block.headers)
        part.content_type, part.parameters = _content_type(value, default_type), headers.parameters(value)
        first_line = self.window.lines_before(part.body_start)
        is_deep = len(self.open_boundaries) + emails >= MAX_DEPTH
        if part.content_type.startswith("multipart/"):
            self._read_multipart(part, is_deep, emails)
        elif _is_open_email(part) and not is_deep and self.parts < MAX_PARTS:
            self.parts += 1
            inner = self.window.split(part.body_start, headers.MAX_FIELDS)
            part.message = self.read_part(part.body_start, inner, "text/plain", emails + 1)
        else:
            self._advance(part.body_start)
        part.end = self._content_end(part.body_start)
        part.lines = self.window.lines_before(part.end) - first_line
        return part

    def _read_multipart(self, part: BodyPart, is_deep: bool, emails: int) -> None:
        if is_deep:
            self.record_defect(f"more than {MAX_DEPTH} levels of parts")
            self._advance(part.body_start)
            return
        part.children = self._read_children(part, emails)
        if not part.children:
            self.record_defect("a multipart without parts")
            part.content_type = "text/plain"

    def _read_children(self, part: BodyPart, emails: int) -> list[BodyPart]:
        level = len(self.open_boundaries)
        self.open_boundaries.append(_Boundary(self._boundary_of(part), emails))
        self._index()
        # In a digest each part is an email unless it says otherwise (RFC 2046 section 5.1.5).
        default_type = "message/rfc822" if part.content_type == "multipart/digest" else "text/plain"
        children = []
        self._advance(part.body_start)
        while self.level == level and not self.is_close:
            if self.parts >= MAX_PARTS:
                self.record_defect(f"more than {MAX_PARTS} parts")
                self._finish()
                break
            self.parts += 1
            start = self.next_line
            block = self.window.split(start, MAX_PART_FIELDS)
            children.append(self.read_part(start, block, default_type, emails))
        is_closed = self.level == level
        self.open_boundaries.pop()
        self._index()
        if is_closed:
            self._advance(self.next_line)
        return children

    def _index(self) -> None:
        """Index the delimiters.

        Those of a boundary go to the innermost multipart, but those of an email win over those of an email
        attached to it: the attached one is a separate file.
        """
        self.levels = {}
        for level, boundary in enumerate(self.open_boundaries):
            outer = self.levels.get(boundary.text)
            if outer is None or self.open_boundaries[outer].emails == boundary.emails:
                self.levels[boundary.text] = level
        # Longer needles are found faster; usually one boundary is open.
        only = self.open_boundaries[0].text if len(self.open_boundaries) == 1 else b""
        self.needle = b"\n--" + only

    def _finish(self) -> None:
        self.level, self.is_close = -1, False
        self.line_start = self.next_line = self.window.skip_rest()

    def _advance(self, start: int) -> None:
        """Advance to the next delimiter line at or after `start`, the beginning of a line."""
        position = max(0, start - 1)
        found = self.window.find(self.needle, position) if self.levels else -1
        while found != -1 and self.dash_lines < MAX_DASH_LINES:
            if self._is_delimiter(found + 1):
                return
            self.dash_lines += 1
            found = self.window.find(self.needle, found + 1)
        if found != -1:
            self.record_defect(f"more than {MAX_DASH_LINES} lines that look like delimiters")
        self._finish()

    def _is_delimiter(self, line_start: int) -> bool:
        line = self.window.line(line_start)
        if line is None:
            return False
        # White space behind a delimiter is padding by relays (RFC 2046 section 5.1.1).
        found = self._level_of(line[2:].rstrip(b" \t\r\n"))
        if found is None:
            return False
        self.level, self.is_close = found
        self.line_start, self.next_line = line_start, line_start + len(line)
        return True

    def _level_of(self, name: bytes) -> tuple[int, bool] | None:
        """Return the multipart whose delimiter has this name, and whether it closes it (RFC 2046, 5.1.1).

        Of two, the one of the outer email comes first.
        """
        opened = self.levels.get(name)
        closed = self.levels.get(name[:-2]) if name.endswith(b"--") else None
        if opened is None:
            return None if closed is None else (closed, True)
        if closed is not None and self.open_boundaries[closed].emails < self.open_boundaries[opened].emails:
            return closed, True
        return opened, False

    def _content_end(self, start: int) -> int:
        """Return where the content ends: before the line break of a delimiter (RFC 2046, 5.1.1)."""
        end = self.line_start
        if self.level != -1:
            end -= self.window.ends_with(b"\n", start, end)
            end -= self.window.ends_with(b"\r", start, end)
        return end

    def _boundary_of(self, part: BodyPart) -> bytes:
        boundary = part.parameters.get("boundary", "").rstrip().encode()
        if 0 < len(boundary) <= MAX_BOUNDARY_BYTES:
            return boundary
        self.record_defect("a multipart without a boundary")
        first_line = self.window.match(_FIRST_DELIMITER, part.body_start)
        if first_line is None or self._level_of(first_line[1].rstrip()) is not None:
            return _NO_BOUNDARY  # a delimiter around this part is none inside it
        return first_line[1].rstrip()


def _is_open_email(part: BodyPart) -> bool:
    """Return whether an attached email can be opened.

    An encoded one, forbidden by RFC 2046, 5.2.1, is a file.
    """
    encoding = part.headers.text("content-transfer-encoding").strip().lower()
    return part.content_type == "message/rfc822" and encoding not in ("base64", "quoted-printable")


def _content_type(value: str, default: str) -> str:
    """Return the type in lower case; the default also for one that cannot be read (RFC 2045 section 5.2)."""
    words = value.partition(";")[0].split(None, 1)
    return words[0].lower() if words and _TYPE.match(words[0]) else default
