"""Text of emails saved by Outlook (MS-OXMSG): head, body, and the files and emails inside."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from postroom_mail.files.old_office.compound import STORAGE, CompoundFile
from postroom_mail.files.old_office.compressed_rtf import unpacked_rtf
from postroom_mail.files.outcome import ReadInside
from postroom_mail.files.rtf import rtf_text
from postroom_mail.html.text import html_to_text
from postroom_mail.mime.charset import decode

MAX_DEPTH = 5
MAX_ATTACHMENTS = 100
MAX_ADDRESSES = 100
PROPERTIES = "__properties_version1.0"
ATTACHMENT, RECIPIENT = "__attach_version1.0_", "__recip_version1.0_"
WIDE, NARROW, BINARY, FOLDER = "001f", "001e", "0102", "000d"
# Property names of MS-OXPROPS, by number.
SUBJECT, BODY, RTF, HTML, CODEPAGE, HTML_CODEPAGE = "0037", "1000", "1009", "1013", 0x3FFD, 0x3FDE
SENDER_NAME, SENDER_ADDRESS, SENDER_MAILBOX, SENT_AT = "0c1a", "5d01", "0c1f", 0x0039
LONG_NAME, SHORT_NAME, FILE_TYPE, FILE_DATA = "3707", "3704", "370e", "3701"
NAME, MAILBOX, ADDRESS, RECIPIENT_KIND = "3001", "3003", "39fe", 0x0C15
FIRST_MOMENT = datetime(1601, 1, 1, tzinfo=UTC)


def is_outlook(names: dict[str, int]) -> bool:
    return PROPERTIES in names


class _Item(Struct, frozen=True):
    """A message, attachment or recipient: a folder of streams, one per property."""

    file: CompoundFile
    names: dict[str, int]
    codec: str

    @classmethod
    def of(cls, file: CompoundFile, folder: int, codec: str = "") -> "_Item":
        return cls(file, file.items(folder), codec)

    def binary(self, number: str, kind: str = BINARY) -> bytes:
        place = self.names.get(f"__substg1.0_{number}{kind}")
        return b"" if place is None else self.file.stream_at(place)

    def text(self, number: str) -> str:
        wide = self.binary(number, WIDE)
        found = (
            wide.decode("utf-16-le", "replace") if wide else decode(self.binary(number, NARROW), self.codec)
        )
        return found.rstrip("\0")

    def line(self, number: str) -> str:
        return " ".join(self.text(number).split())

    def fixed(self, head_bytes: int) -> dict[int, int]:
        """Return the numeric properties, stored together in one stream."""
        place = self.names.get(PROPERTIES)
        raw = b"" if place is None else self.file.stream_at(place)[head_bytes:]
        entries = struct.iter_unpack("<HHIQ", raw[: len(raw) // 16 * 16])
        return {number: value for _, number, _, value in entries}

    def folders(self, prefix: str) -> list[int]:
        return [place for name, place in sorted(self.names.items()) if name.startswith(prefix)]


def outlook_text(file: CompoundFile, read_inside: ReadInside) -> Iterator[str]:
    return _message_text(file, 0, 32, read_inside, 0)


def _message_text(
    file: CompoundFile, folder: int, head_bytes: int, read_inside: ReadInside, depth: int
) -> Iterator[str]:
    numbers = _Item.of(file, folder).fixed(head_bytes)
    item = _Item.of(file, folder, f"cp{numbers.get(CODEPAGE, 1252) & 0xFFFF}")
    yield from _head(item, numbers)
    yield f"\n{_body(item, numbers)}\n"
    for place in item.folders(ATTACHMENT)[:MAX_ATTACHMENTS]:
        yield from _attachment_text(file, place, read_inside, depth)


def _head(item: _Item, numbers: dict[int, int]) -> Iterator[str]:
    address = item.line(SENDER_ADDRESS) or item.line(SENDER_MAILBOX)
    recipients = list(_recipients(item))
    fields = {
        "From": _person(item.line(SENDER_NAME), address),
        "To": ", ".join(person for kind, person in recipients if kind == 1),
        "Cc": ", ".join(person for kind, person in recipients if kind == 2),
        "Date": _moment(numbers.get(SENT_AT, 0)),
        "Subject": item.line(SUBJECT),
    }
    for name, value in fields.items():
        if value:
            yield f"{name}: {value}\n"


def _recipients(item: _Item) -> Iterator[tuple[int, str]]:
    for place in item.folders(RECIPIENT)[:MAX_ADDRESSES]:
        person = _Item.of(item.file, place, item.codec)
        kind = person.fixed(8).get(RECIPIENT_KIND, 1) & 0x0F
        yield kind, _person(person.line(NAME), person.line(ADDRESS) or person.line(MAILBOX))


def _person(name: str, address: str) -> str:
    if "@" not in address or name == address:
        return name or address
    return f"{name} <{address}>" if name else address


def _moment(ticks: int) -> str:
    """Return a time, given in steps of 100 ns since 1601."""
    try:
        moment = FIRST_MOMENT + timedelta(microseconds=ticks // 10)
    except OverflowError:
        return ""
    return moment.strftime("%Y-%m-%d %H:%M UTC") if ticks else ""


def _body(item: _Item, numbers: dict[int, int]) -> str:
    if plain := item.text(BODY):
        return plain
    if html := item.binary(HTML) or item.binary(HTML, NARROW):
        return html_to_text(decode(html, f"cp{numbers.get(HTML_CODEPAGE, 65001) & 0xFFFF}"))
    return "".join(rtf_text(unpacked_rtf(item.binary(RTF))))


def _attachment_text(file: CompoundFile, folder: int, read_inside: ReadInside, depth: int) -> Iterator[str]:
    item = _Item.of(file, folder)
    name = item.line(LONG_NAME) or item.line(SHORT_NAME) or item.line(NAME)
    yield f"\n{name or 'attachment'}:\n"
    inner = item.names.get(f"__substg1.0_{FILE_DATA}{FOLDER}")
    if inner is not None and file.entries[inner].kind == STORAGE:
        if depth < MAX_DEPTH:
            yield from _message_text(file, inner, 24, read_inside, depth + 1)
    elif content := item.binary(FILE_DATA):
        yield from read_inside(item.line(FILE_TYPE), name, content)
