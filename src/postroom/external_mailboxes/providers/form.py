"""The fields of a form, as bytes: an email in one of them has no charset."""

from urllib.parse import unquote_to_bytes

from msgspec import Struct
from python_multipart.multipart import MultipartParser, parse_options_header

from postroom.external_mailboxes.providers.post import BrokenPost, Post

MAX_FIELDS = 1_000
MAX_NAME_BYTES = 200
CONTENT_TYPE_LIMIT = 500
SHORT_BYTES = 1_000
TOO_MANY = "The form has too many fields. Have the service post the raw mail."
# Decoding makes an object of every escape: of 40 MB at once they would take 2 GB.
CHUNK_BYTES = 64 * 1024
ESCAPE_BYTES = 3


class Form(Struct, frozen=True):
    """Values are decoded when they are asked for: what signs a post is short, and asked for first."""

    values: dict[str, bytes]
    is_urlencoded: bool = False

    def short(self, name: str) -> bytes:
        """Return the beginning of a value; empty if there is none."""
        most = SHORT_BYTES * (ESCAPE_BYTES if self.is_urlencoded else 1)
        return self._decoded(self.values.get(name, b"")[:most])[:SHORT_BYTES]

    def whole(self, name: str) -> bytes:
        """Return a value; empty if there is none."""
        return self._decoded(self.values.get(name, b""))

    def _decoded(self, value: bytes) -> bytes:
        return b"".join(map(_unquoted, _chunks(value))) if self.is_urlencoded else value


def _chunks(value: bytes) -> list[bytes]:
    """Cut where no escape is cut in two."""
    chunks, start = [], 0
    while start < len(value):
        end = start + CHUNK_BYTES
        escape = value.rfind(b"%", end - ESCAPE_BYTES + 1, end)
        end = escape if escape > start else end
        chunks.append(value[start:end])
        start = end
    return chunks


def _unquoted(chunk: bytes) -> bytes:
    return unquote_to_bytes(chunk.replace(b"+", b" "))


def read_form(post: Post) -> Form:
    """Read a form. The first of several equal names counts. Files are left out."""
    written = post.headers.get("content-type", "")
    kind, options = parse_options_header(written[:CONTENT_TYPE_LIMIT])
    if kind == b"multipart/form-data" and (boundary := options.get(b"boundary")):
        return Form(_read_multipart(post.body, boundary))
    if kind == b"application/x-www-form-urlencoded":
        return Form(_read_urlencoded(post.body), is_urlencoded=True)
    raise BrokenPost("The body is not a form. Set the URL where the service posts multipart/form-data.")


def _read_urlencoded(body: bytes) -> dict[str, bytes]:
    if body.count(b"&") >= MAX_FIELDS:
        raise BrokenPost(TOO_MANY)
    values: dict[str, bytes] = {}
    for pair in body.split(b"&"):
        name, equals, value = pair.partition(b"=")
        if equals and len(name) <= MAX_NAME_BYTES:
            values.setdefault(_unquoted(name).decode("latin-1"), value)
    return values


def _read_multipart(body: bytes, boundary: bytes) -> dict[str, bytes]:
    parts = _Parts()
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": parts.begin,
                "on_header_field": parts.take_name,
                "on_header_value": parts.take_value,
                "on_header_end": parts.end_header,
                "on_part_data": parts.take_data,
                "on_part_end": parts.end,
                "on_end": parts.finish,
            },
        )
        parser.write(body)
        parser.finalize()
    except ValueError:
        raise BrokenPost("The form cannot be read. Is the URL set at the right service?") from None
    if not parts.is_whole:
        raise BrokenPost("The form is incomplete. Post it again.")
    return parts.found


class _Parts:
    """Collects what the parser finds, part by part."""

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}
        self.is_whole = False
        self._count = 0
        self._header = (b"", b"")
        self._disposition = b""
        self._content: list[bytes] = []

    def begin(self) -> None:
        self._count += 1
        if self._count > MAX_FIELDS:
            raise BrokenPost(TOO_MANY)
        self._header, self._disposition, self._content = (b"", b""), b"", []

    def take_name(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0] + data[start:end], b"")

    def take_value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], self._header[1] + data[start:end])

    def end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = (b"", b"")

    def take_data(self, data: bytes, start: int, end: int) -> None:
        self._content.append(data[start:end])

    def end(self) -> None:
        _, options = parse_options_header(self._disposition[:CONTENT_TYPE_LIMIT])
        name = options.get(b"name", b"").decode("latin-1")
        if name and b"filename" not in options:
            self.found.setdefault(name, b"".join(self._content))

    def finish(self) -> None:
        self.is_whole = True
