"""Header fields in raw bytes: splitting, unfolding, encoded words (RFC 2047), parameters (RFC 2231)."""

import binascii
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from postroom_mail.mime import charset

MAX_FIELDS = 20_000
MAX_HEADER_BYTES = 1024 * 1024
MAX_VALUE_BYTES = 512 * 1024
MAX_ID_LENGTH = 998  # of a line (RFC 5322 section 2.1.1)
MAX_PARAMETERS = 200

# A name is printable ASCII without a colon (RFC 5322 section 3.6.8); old programs put blanks behind it
# (section 4.5). A line that starts with "--" is a MIME delimiter, never a field. Possessive, so that no line
# is read twice.
_FIELD = re.compile(rb"(?!--)([!-9;-~]++)[ \t]*+:([^\n]*+\n?(?:[ \t][^\n]*+\n?)*+)")
_BLANK = re.compile(rb"\r?\n|\Z")
_OTHER_LINE = re.compile(rb"(?!--)[^\n]*+\n")

# RFC 2047 section 2; behind the star stands a language (RFC 2231 section 5).
_ENCODED_WORD = re.compile(r"=\?([^?\s*]{1,64})(?:\*[^?\s]{0,64})?\?([bBqQ])\?([^?]*+)\?=")
_RAW_WORD = re.compile(rb"=\?[^?\s]{1,128}\?[qQ]\?[^?]*+\?=")
_EIGHT_BIT = re.compile(rb"[\x80-\xff]")
_PARAMETER = re.compile(r';\s*+([^\s=;"]++)\s*+=\s*+(?:"((?:[^"\\]++|\\.)*+)"?|([^;]*+))', re.DOTALL)
_SECTION = re.compile(r"([^*]++)(?:\*([0-9]{1,4}))?(\*?)\Z")
# Only these: senders on Windows write whole paths with bare backslashes.
_ESCAPED = re.compile(r'\\(["\\])')
_PLAIN_ID = re.compile(rf"<[^<>\s]{{1,{MAX_ID_LENGTH}}}>")
_ANGLE_ID = re.compile(r"<([^<>]++)>")
# `Message from Joe <joe@x.org> of Monday`, as old programs write (RFC 822 section 4.6.2): a person, no id.
_MESSAGE_FROM = re.compile(r"\bfrom\b[^<>]{0,100}<[^<>]{1,200}>(?=\s*(?:of|on|dated|sent)\b)", re.IGNORECASE)


class Headers(Struct, frozen=True):
    """The fields of one email or part, by lower-case name, each with every raw value in order."""

    fields: Mapping[str, list[bytes]]

    def text(self, name: str, label: str = charset.UNDECLARED) -> str:
        """Return the first value, unfolded, encoded words not yet decoded; "" if absent."""
        values = self.fields.get(name)
        return unfold(values[0], label) if values else ""

    def joined(self, name: str, label: str = charset.UNDECLARED) -> str:
        """Return all values as one list: RFC 5322, 3.6 allows one To field, and several count as one."""
        values = self.fields.get(name)
        if not values:
            return ""
        if len(values) == 1:
            return unfold(values[0], label)
        return ", ".join(unfold(value, label) for value in values)[:MAX_VALUE_BYTES]

    def count(self, name: str) -> int:
        return len(self.fields.get(name, ()))


class Block(Struct, frozen=True):
    """A header block, where the body after it starts, and whether all of it was read."""

    headers: Headers
    body_start: int
    is_complete: bool


def split(raw: bytes, start: int, max_fields: int = MAX_FIELDS) -> Block:
    """Return the header at `start`. Every reader, signer and verifier takes the end of a header from here.

    It ends at the first empty line. It also ends at a line that is no field, unless a field follows that
    line: the rest is text that somebody wrote without an empty line before it.
    """
    return split_lines(with_line_feeds(raw), start, max_fields)


def split_lines(raw: bytes, start: int, max_fields: int = MAX_FIELDS) -> Block:
    """Return the same as `split`, of bytes whose lines end in LF."""
    fields: dict[str, list[bytes]] = {}
    position, limit = start, start + MAX_HEADER_BYTES
    for match in each_field(raw, start, max_fields):
        fields.setdefault(match[1].decode("ascii").lower(), []).append(match[2])
        position = match.end()
    is_complete = _FIELD.match(raw, position, limit) is None and not position == limit < len(raw)
    return Block(Headers(fields), _body_start(raw, position, limit), is_complete)


def each_field(raw: bytes, start: int, max_fields: int = MAX_FIELDS) -> Iterator[re.Match[bytes]]:
    """Yield the fields of the header at `start`: name and value are the groups of each match."""
    position, limit = start, start + MAX_HEADER_BYTES
    for count in range(max_fields):
        match = _FIELD.match(raw, position, limit) or _field_after_noise(raw, position, count, limit)
        if match is None:
            return
        yield match
        position = match.end()


def with_line_feeds(raw: bytes) -> bytes:
    """Return `raw`; without any LF at its beginning, each CR becomes one, as old systems end their lines."""
    return raw if raw.find(b"\n", 0, MAX_HEADER_BYTES) != -1 else raw.replace(b"\r", b"\n")


def _field_after_noise(raw: bytes, position: int, count: int, limit: int) -> re.Match[bytes] | None:
    """Return the field after one line that is none: an mbox "From " line in front, or a badly folded line."""
    if _BLANK.match(raw, position, limit) or (
        count == 0 and not raw.startswith((b"From ", b">From "), position)
    ):
        return None
    line = _OTHER_LINE.match(raw, position, limit)
    return _FIELD.match(raw, line.end(), limit) if line else None


def _body_start(raw: bytes, position: int, limit: int) -> int:
    blank = _BLANK.match(raw, position, limit)
    return blank.end() if blank else position


def unfold(value: bytes, label: str = charset.UNDECLARED) -> str:
    """Unfold to one line (RFC 5322, 2.2.3); 8-bit bytes are UTF-8 (RFC 6532) or else of the given charset."""
    line = value[:MAX_VALUE_BYTES].translate(None, b"\r\n\0")
    if line.isascii() and b"\x1b" not in line:
        return line.decode("ascii").strip()
    return charset.decode_unlabelled(_RAW_WORD.sub(_with_bytes_encoded, line), label).strip()


def _with_bytes_encoded(word: re.Match[bytes]) -> bytes:
    """Encode raw 8-bit bytes in an encoded word like the rest: they are of its charset."""
    return _EIGHT_BIT.sub(lambda byte: b"=%02X" % byte[0][0], word[0])


def decode_words(value: str) -> str:
    """Decode encoded words; broken ones stay as they are."""
    if "=?" not in value:
        return value
    runs = groupby(_pieces(value), key=lambda piece: piece[0])
    return "".join(charset.decode(b"".join(data for _, data in run), label) for label, run in runs)


def _pieces(value: str) -> Iterator[tuple[str, bytes]]:
    """Yield charset and bytes. White space between two encoded words is no text (RFC 2047, 6.2).

    Neighbours of one charset are decoded together: some senders split characters, against section 5.
    """
    read_to, follows_word = 0, False
    for match in _ENCODED_WORD.finditer(value):
        data = _word_bytes(match[2], match[3])
        if data is None:
            continue
        gap = value[read_to : match.start()]
        if gap and not (follows_word and gap.isspace()):
            yield "utf-8", gap.encode("utf-8", "replace")
        yield match[1].lower(), data
        read_to, follows_word = match.end(), True
    yield "utf-8", value[read_to:].encode("utf-8", "replace")


def _word_bytes(encoding: str, text: str) -> bytes | None:
    encoded = text.encode("utf-8", "replace")
    if encoding in "qQ":
        return binascii.a2b_qp(encoded, header=True)  # "_" is a space (RFC 2047 section 4.2)
    try:
        return binascii.a2b_base64(encoded + b"==")
    except binascii.Error:
        return None


def parameters(value: str) -> dict[str, str]:
    """Return the parameters after the first ";", by lower-case name; RFC 2231 forms win over plain ones."""
    if ";" not in value:
        return {}
    plain: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[bool, str]]] = {}
    for count, match in enumerate(_PARAMETER.finditer(value)):
        if count == MAX_PARAMETERS:
            break
        text = _ESCAPED.sub(r"\1", match[2]) if match[2] is not None else match[3].strip()
        section = _SECTION.match(match[1].lower())
        if section is None or (section[2] is None and not section[3]):
            plain.setdefault(match[1].lower(), text)
        else:
            sections.setdefault(section[1], {}).setdefault(int(section[2] or 0), (bool(section[3]), text))
    return plain | {name: _joined_sections(parts) for name, parts in sections.items()}


def _joined_sections(parts: dict[int, tuple[bool, str]]) -> str:
    """Join numbered pieces, of which the first may name the charset (RFC 2231, 3 and 4)."""
    ordered = [parts[number] for number in sorted(parts)]
    label = charset.UNDECLARED
    if ordered[0][0] and ordered[0][1].count("'") >= 2:
        label, _, text = ordered[0][1].split("'", 2)
        ordered[0] = (True, text)
    pieces = [unquote_to_bytes(text) if is_encoded else text.encode() for is_encoded, text in ordered]
    return charset.decode(b"".join(pieces), label)


def _bare_ids(value: str) -> list[str]:
    """Return bare ids, only if all words are ids: `joe@x.org's message of Monday` is a sentence."""
    words = value.split()
    return words if all("@" in word and "'" not in word for word in words) else []


def message_ids(value: str, limit: int) -> tuple[str, ...]:
    """Return the ids in angle brackets (RFC 5322, 3.6.4), the last `limit` of them.

    Without brackets, bare words with an "@" count.
    """
    if not value:
        return ()
    if _PLAIN_ID.fullmatch(value):
        return (value,)
    found = _ANGLE_ID.findall(_MESSAGE_FROM.sub("", value)) or _bare_ids(value)
    ids = ("".join(id_.split()).strip("<>") for id_ in found[-limit:])
    return tuple(f"<{id_}>" for id_ in ids if 0 < len(id_) <= MAX_ID_LENGTH)
