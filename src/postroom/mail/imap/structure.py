"""Positions of the parts of a mail, found in one pass over its chunks: it is never held whole."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from postroom.mail import headers
from postroom.mail.headers import Headers

MAX_PARTS = 1_000
MAX_DEPTH = 50
MAX_HEADER_BYTES = 256 * 1024
MAX_BOUNDARY_BYTES = 250
LONG_LINE_BYTES = 64 * 1024
NO_HEADERS = Headers({})


class BodyPart(Struct):
    """A part from its header to its end; `message` is the mail inside a message/rfc822."""

    header_start: int
    default_type: str = "text/plain"
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


class _OpenPart(Struct):
    part: BodyPart
    depth: int
    boundary: bytes | None = None
    is_in_header: bool = True
    is_over: bool = False  # after the last delimiter
    header: bytearray = field(default_factory=bytearray)
    first_line: int = 0


class _Scanner:
    def __init__(self) -> None:
        self.root = BodyPart(0)
        self.open = [_OpenPart(self.root, 0)]
        self.position = 0
        self.line = 0
        self.parts = 1
        self.break_bytes = 0  # of the line break before this line

    def take(self, line: bytes, is_start: bool) -> None:
        if is_start and line.startswith(b"--") and self._take_delimiter(line):
            pass
        elif self.open[-1].is_in_header:
            self._take_header(self.open[-1], line, is_start)
        self.position += len(line)
        self.line += line.endswith(b"\n")
        self.break_bytes = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0

    def _take_delimiter(self, line: bytes) -> bool:
        if len(line) > 2 * MAX_BOUNDARY_BYTES:
            return False
        name = line[2:].rstrip(b" \t\r\n")
        for level in reversed(range(len(self.open))):
            boundary = self.open[level].boundary
            if boundary is None or self.open[level].is_over:
                continue
            if name == boundary and self.parts < MAX_PARTS:
                self._close_behind(level, self.break_bytes)
                self._begin_child(self.open[level], len(line))
                return True
            if name == boundary + b"--":
                self._close_behind(level, self.break_bytes)
                self.open[level].is_over = True
                return True
        return False

    def _begin_child(self, parent: _OpenPart, delimiter_bytes: int) -> None:
        self.parts += 1
        is_digest = parent.part.content_type == "multipart/digest"
        child = BodyPart(self.position + delimiter_bytes, "message/rfc822" if is_digest else "text/plain")
        parent.part.children.append(child)
        self.open.append(_OpenPart(child, parent.depth + 1, first_line=self.line + 1))

    def _take_header(self, current: _OpenPart, line: bytes, is_start: bool) -> None:
        if is_start and not line.strip(b"\r\n"):
            self._end_header(current, self.position + len(line))
        elif len(current.header) < MAX_HEADER_BYTES:
            current.header += line

    def _end_header(self, current: _OpenPart, body_start: int) -> None:
        part = current.part
        current.is_in_header = False
        current.first_line = self.line + 1
        part.body_start = body_start
        part.headers = headers.split(bytes(current.header), 0).headers
        value = part.headers.text("content-type")
        part.content_type = _content_type(value, part.default_type)
        part.parameters = headers.parameters(value)
        if current.depth >= MAX_DEPTH or self.parts >= MAX_PARTS:
            return
        if part.content_type.startswith("multipart/"):
            boundary = part.parameters.get("boundary", "").rstrip().encode()
            current.boundary = boundary if 0 < len(boundary) <= MAX_BOUNDARY_BYTES else None
        elif part.content_type == "message/rfc822" and not _is_encoded(part.headers):
            self.parts += 1
            part.message = BodyPart(body_start)
            self.open.append(_OpenPart(part.message, current.depth + 1, first_line=self.line + 1))

    def _close_behind(self, level: int, break_bytes: int) -> None:
        while len(self.open) > level + 1:
            self._close(self.open.pop(), self.position - break_bytes, self.line - bool(break_bytes))

    def _close(self, current: _OpenPart, end: int, last_line: int) -> None:
        """The line break before a delimiter belongs to that (RFC 2046 section 5.1.1)."""
        part = current.part
        if current.is_in_header:
            self._end_header(current, max(part.header_start, end))
            if self.open and self.open[-1].part is part.message:
                self.open.pop()
                part.message = None
        part.end = max(part.body_start, end)
        part.lines = max(0, last_line - current.first_line)
        if not part.children and part.content_type.startswith("multipart/"):
            part.content_type, part.parameters = "text/plain", {}

    def finish(self) -> BodyPart:
        while self.open:
            self._close(self.open.pop(), self.position, self.line)
        return self.root


def scan(chunks: Iterable[bytes]) -> BodyPart:
    scanner = _Scanner()
    for line, is_start in _lines(chunks):
        scanner.take(line, is_start)
    return scanner.finish()


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Lines with their breaks, and whether they begin here: a very long one comes in pieces."""
    rest, is_start = b"", True
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n", is_start
            is_start = True
        if len(rest) > LONG_LINE_BYTES:
            yield rest, is_start
            rest, is_start = b"", False
    if rest:
        yield rest, is_start


def _content_type(value: str, default: str) -> str:
    word = value.partition(";")[0].strip().lower()
    main, slash, sub = word.partition("/")
    is_valid = slash and main.isascii() and sub.isascii() and main.replace("-", "").isalnum() and sub
    return word if is_valid and " " not in word else default


def _is_encoded(fields: Headers) -> bool:
    """RFC 2046 section 5.2.1 forbids it; such a part is a file."""
    return fields.text("content-transfer-encoding").strip().lower() in ("base64", "quoted-printable")


def find(root: BodyPart, path: tuple[int, ...]) -> BodyPart | None:
    """By its part numbers (RFC 3501 section 6.4.5)."""
    node, is_mail = root, True
    for number in path:
        inside = node if is_mail else node.message
        if node.children and not is_mail:
            inside = node
        if inside is None:
            return None
        if inside.children:
            if number > len(inside.children):
                return None
            node = inside.children[number - 1]
        elif number == 1:
            node = inside
        else:
            return None
        is_mail = False
    return node


def span(root: BodyPart, path: tuple[int, ...], kind: str) -> tuple[int, int] | None:
    """Start and end of a section; None if there is none."""
    part = find(root, path)
    if part is None:
        return None
    if kind == "MIME":
        return part.header_start, part.body_start
    if not kind:
        return (part.body_start, part.end) if path else (0, part.end)
    mail = part.message if path else part
    if mail is None:
        return None
    return (mail.body_start, mail.end) if kind == "TEXT" else (mail.header_start, mail.body_start)


class StructureCache(Struct):
    """Caches the last mail: programs fetch its parts one after the other."""

    key: str = ""
    root: BodyPart | None = None
