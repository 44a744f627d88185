"""Text of winmail.dat (MS-OXTNEF), in which Outlook wraps a message: names of files, and words."""

import struct
from collections.abc import Iterator

from msgspec import Struct

from postroom_mail.files.old_office.compressed_rtf import unpacked_rtf
from postroom_mail.files.outcome import ReadInside
from postroom_mail.files.rtf import rtf_text
from postroom_mail.html.text import html_to_text
from postroom_mail.mime.charset import clean_line, decode

SIGNATURE_BYTES = 4
MAX_ATTRIBUTES = 10_000
MAX_PROPERTIES = 2_000
MAX_FILES = 100
MAX_NAME_CHARS = 500
HEAD = struct.Struct("<BII")
# Attributes (MS-OXTNEF section 2.1.3.3), with their types.
BODY, PROPERTIES, CODEPAGE = 0x0002800C, 0x00069003, 0x00069007
FILE_BEGINS, FILE_DATA, FILE_TITLE, FILE_PROPERTIES = 0x00069002, 0x0006800F, 0x00018010, 0x00069005
# Properties (MS-OXPROPS) and their types.
TEXT, RTF, HTML = 0x1000, 0x1009, 0x1013
LONG_NAME, SHORT_NAME, OBJECT, FILE_TYPE = 0x3707, 0x3704, 0x3701, 0x370E
WIDE, NARROW, BINARY, EMBEDDED = 0x1F, 0x1E, 0x102, 0x0D
MULTIPLE, FIRST_NAMED, BY_NAME = 0x1000, 0x8000, 1
FIXED_BYTES = {1: 4, 2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 0x0A: 4, 0x0B: 4, 0x14: 8, 0x40: 8, 0x48: 16}

Properties = dict[int, tuple[int, bytes]]


class _WrappedFile(Struct):
    title: bytes = b""
    content: bytes = b""
    properties: Properties = {}


class _WrappedMessage(Struct):
    codec: str = "cp1252"
    body: bytes = b""
    properties: Properties = {}
    files: list[_WrappedFile] = []


def tnef_text(content: bytes, read_inside: ReadInside) -> Iterator[str]:
    message = _read(content)
    named = [(_name(message, file), file) for file in message.files]
    yield "".join(f"{name}\n" for name, _ in named)
    yield f"\n{_words(message)}\n"
    for name, file in named:
        pieces = read_inside(_text(message, file.properties, FILE_TYPE), name, _content(file))
        if (first := next(pieces, None)) is not None:
            yield f"\n{name}:\n{first}"
            yield from pieces
            yield "\n"


def _read(content: bytes) -> _WrappedMessage:
    """Return what the attributes say, up to the first damaged one."""
    message = _WrappedMessage()
    for number, value in _attributes(content):
        if number == CODEPAGE and len(value) >= 4:
            message.codec = f"cp{struct.unpack_from('<I', value)[0] & 0xFFFF}"
        elif number == BODY:
            message.body = value
        elif number == PROPERTIES:
            message.properties = _properties(value)
        elif number == FILE_BEGINS:
            if len(message.files) == MAX_FILES:
                break
            message.files.append(_WrappedFile())
        elif message.files:
            _add(message.files[-1], number, value)
    return message


def _add(file: _WrappedFile, number: int, value: bytes) -> None:
    if number == FILE_DATA:
        file.content = value
    elif number == FILE_TITLE:
        file.title = value
    elif number == FILE_PROPERTIES:
        file.properties = _properties(value)


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes: each is a level, a number, a length, the value and an unverified checksum."""
    place = SIGNATURE_BYTES + 2
    for _ in range(MAX_ATTRIBUTES):
        if place + HEAD.size > len(content):
            return
        _, number, length = HEAD.unpack_from(content, place)
        place += HEAD.size
        if place + length > len(content):
            return
        yield number, content[place : place + length]
        place += length + 2


def _properties(raw: bytes) -> Properties:
    """Return the first value of each property, up to the first damaged one (section 2.1.3.4)."""
    found: Properties = {}
    try:
        reader = _PropertyReader(raw)
        for _ in range(min(reader.number(), MAX_PROPERTIES)):
            kind, number = reader.pair()
            if number >= FIRST_NAMED:
                reader.skip(16)
                reader.skip_padded() if reader.number() == BY_NAME else reader.skip(4)
            values = reader.values(kind)
            if values:
                found.setdefault(number, (kind & ~MULTIPLE, values[0]))
    except _DamagedProperties:
        pass
    return found


class _DamagedProperties(Exception):
    """The properties are damaged, or of a kind whose size is not known."""


class _PropertyReader:
    def __init__(self, raw: bytes) -> None:
        self._raw, self._place = raw, 0

    def take(self, size: int) -> bytes:
        taken = self._raw[self._place : self._place + size]
        if len(taken) < size:
            raise _DamagedProperties
        self._place += size
        return taken

    def skip(self, size: int) -> None:
        self.take(size)

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def pair(self) -> tuple[int, int]:
        return int.from_bytes(self.take(2), "little"), int.from_bytes(self.take(2), "little")

    def padded(self) -> bytes:
        size = self.number()
        value = self.take(size)
        self._place += -size % 4
        return value

    def skip_padded(self) -> None:
        self.padded()

    def values(self, kind: int) -> list[bytes]:
        single = kind & ~MULTIPLE
        if single in (WIDE, NARROW, BINARY, EMBEDDED):
            return [self.padded() for _ in range(self.number())]
        if single not in FIXED_BYTES:
            raise _DamagedProperties
        count = self.number() if kind & MULTIPLE else 1
        return [self.take(FIXED_BYTES[single]) for _ in range(count)]


def _text(message: _WrappedMessage, properties: Properties, number: int) -> str:
    kind, value = properties.get(number, (NARROW, b""))
    if kind not in (WIDE, NARROW):
        return ""
    found = value.decode("utf-16-le", "replace") if kind == WIDE else decode(value, message.codec)
    return found.rstrip("\0")


def _name(message: _WrappedMessage, file: _WrappedFile) -> str:
    named = (_text(message, file.properties, number) for number in (LONG_NAME, SHORT_NAME))
    name = next(filter(None, named), "") or decode(file.title, message.codec).rstrip("\0")
    return clean_line(name[:MAX_NAME_CHARS]) or "attachment"


def _content(file: _WrappedFile) -> bytes:
    """Return the bytes.

    Those of an object lose their interface id, which makes a message a TNEF file again.
    """
    kind, value = file.properties.get(OBJECT, (0, b""))
    if kind == EMBEDDED:
        return value[16:]
    return file.content or (value if kind == BINARY else b"")


def _words(message: _WrappedMessage) -> str:
    if plain := _text(message, message.properties, TEXT) or decode(message.body, message.codec).rstrip("\0"):
        return plain
    kind, html = message.properties.get(HTML, (0, b""))
    if kind in (BINARY, NARROW) and html:
        return html_to_text(decode(html, "utf-8"))
    return "".join(rtf_text(unpacked_rtf(message.properties.get(RTF, (0, b""))[1])))
