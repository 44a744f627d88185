"""Values as IMAP writes them: strings, flags, dates, ENVELOPE and BODYSTRUCTURE (RFC 3501 section 7.4.2)."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from itertools import islice

from postroom_mail.mime import address, headers
from postroom_mail.mime.address import Address
from postroom_mail.mime.headers import Headers
from postroom_mail.mime.imap_sections import BodyPart

NIL = b"NIL"
SECONDS_OF_A_DAY = 86_400
FIRST_DAY = date(1970, 1, 1).toordinal()
MAX_QUOTED_BYTES = 1_000
MAX_ADDRESSES_SHOWN = 500
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNQUOTABLE = re.compile(rb"[\x00-\x1f\x7f-\xff]")
# What may hold a colon without a group, and the ends of groups.
_GROUP_ENDS = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|\((?:[^()\\]|\\.)*+\)?|<[^<>]*+>?|\[[^\[\]]*+\]?|([:;])', re.DOTALL
)
_ROUTE = re.compile(r"<\s*+(@[^:<>]*+):")
_UNUSUAL = re.compile(r"[\x00-\x1f\x7f]")


def string(value: bytes) -> bytes:
    """Return a quoted string if possible, else a literal."""
    if len(value) <= MAX_QUOTED_BYTES and not _UNQUOTABLE.search(value):
        return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    value = value.replace(b"\0", b"")
    return b"{%d}\r\n%s" % (len(value), value)


def nstring(value: str) -> bytes:
    return string(value.encode()) if value else NIL


@lru_cache(4096)
def flag_list(flags: frozenset[str]) -> bytes:
    return b"(" + " ".join(sorted(flags)).encode() + b")"


def internal_date(at: int) -> bytes:
    days, seconds = divmod(at // 1000, SECONDS_OF_A_DAY)
    minutes, second = divmod(seconds, 60)
    return b'"%s %02d:%02d:%02d +0000"' % (_day(days), minutes // 60, minutes % 60, second)


@lru_cache(4096)
def _day(days: int) -> bytes:
    day = date.fromordinal(FIRST_DAY + days)
    return f"{day.day:02d}-{MONTHS[day.month - 1]}-{day.year:04d}".encode()


def numbers(found: Iterable[int]) -> bytes:
    """Return the numbers as ranges: `1:3,7`."""
    ranges: list[list[int]] = []
    for number in found:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}:{high}" for low, high in ranges).encode()


def envelope(fields: Headers) -> bytes:
    senders = _addresses(fields, "from")
    parts = (
        nstring(_line(fields, "date")),
        nstring(_line(fields, "subject")),
        senders,
        _addresses(fields, "sender", senders),
        _addresses(fields, "reply-to", senders),
        _addresses(fields, "to"),
        _addresses(fields, "cc"),
        _addresses(fields, "bcc"),
        nstring(_line(fields, "in-reply-to")),
        nstring(_line(fields, "message-id")),
    )
    return b"(" + b" ".join(parts) + b")"


def envelope_of(raw: bytes) -> bytes:
    """Return the envelope of an email, or of its header alone."""
    return envelope(headers.split(raw, 0).headers)


def _line(fields: Headers, name: str) -> str:
    """Return the value as in the email, on one line."""
    return _UNUSUAL.sub(" ", fields.text(name))


def _addresses(fields: Headers, name: str, otherwise: bytes = NIL) -> bytes:
    value = fields.joined(name)
    if ":" in value:
        found = list(islice(_with_groups(value), MAX_ADDRESSES_SHOWN))
    else:
        found = [_address(each) for each in address.parse_list(value)[:MAX_ADDRESSES_SHOWN]] if value else []
    return b"(" + b"".join(found) + b")" if found else otherwise


def _with_groups(value: str) -> Iterator[bytes]:
    """Yield the mailboxes.

    A group begins with its name and no host, and ends with neither (RFC 3501, 7.4.2).
    """
    began, is_open, last = 0, False, value.rfind(";")
    for found in _GROUP_ENDS.finditer(value):
        if found[1] is None or (found[1] == ":" and (is_open or found.start() > last)):
            continue
        piece, began = value[began : found.start()], found.end()
        name = ""
        if found[1] == ":":
            piece, _, name = piece.rpartition(",")
        yield from _mailboxes(piece)
        if found[1] == ":":
            yield _address(Address("", " ".join(name.replace('"', "").split()) or "group"))
        elif is_open:
            yield b"(NIL NIL NIL NIL)"
        is_open = found[1] == ":"
    yield from _mailboxes(value[began:])
    if is_open:
        yield b"(NIL NIL NIL NIL)"


def _mailboxes(piece: str) -> list[bytes]:
    found = address.parse_list(piece)
    route = _ROUTE.search(piece) if len(found) == 1 else None
    return [_address(each, route[1] if route else "") for each in found]


def _address(each: Address, route: str = "") -> bytes:
    local, _, domain = each.address.rpartition("@")
    words = (
        nstring(encoded(each.name)),
        nstring(route),
        nstring(local or each.address),
        nstring(domain if local else ""),
    )
    return b"(" + b" ".join(words) + b")"


def encoded(text: str) -> str:
    """Return text as encoded words if not ASCII (RFC 2047)."""
    from email.header import Header

    if text.isascii():
        return _UNUSUAL.sub(" ", text)
    return Header(text, "utf-8", maxlinelen=10_000).encode(linesep="")


def body_structure(part: BodyPart, is_extended: bool) -> bytes:
    main, _, sub = part.content_type.partition("/")
    if part.children:
        inside = b"".join(body_structure(child, is_extended) for child in part.children)
        words = [inside + b" " + string(sub.upper().encode())]
        if is_extended:
            words += [_parameters(part.parameters), *_extension(part.headers)]
        return b"(" + b" ".join(words) + b")"
    parameters = part.parameters or ({"charset": "us-ascii"} if main == "text" else {})
    transfer = part.headers.text("content-transfer-encoding").strip().upper() or "7BIT"
    words = [
        string(main.upper().encode()),
        string(sub.upper().encode()),
        _parameters(parameters),
        nstring(_line(part.headers, "content-id")),
        nstring(_line(part.headers, "content-description")),
        string(_UNUSUAL.sub("", transfer).encode()),
        b"%d" % part.size_bytes,
    ]
    if part.message is not None:
        inside = body_structure(part.message, is_extended)
        words += [envelope(part.message.headers), inside, b"%d" % part.lines]
    elif main == "text":
        words.append(b"%d" % part.lines)
    if is_extended:
        words += [nstring(_line(part.headers, "content-md5")), *_extension(part.headers)]
    return b"(" + b" ".join(words) + b")"


def _extension(fields: Headers) -> list[bytes]:
    """Return disposition, language and location."""
    value = fields.text("content-disposition")
    word = _UNUSUAL.sub("", value.partition(";")[0].strip().lower())
    disposition = NIL
    if word:
        disposition = b"(" + string(word.encode()) + b" " + _parameters(headers.parameters(value)) + b")"
    return [
        disposition,
        nstring(_line(fields, "content-language")),
        nstring(_line(fields, "content-location")),
    ]


def _parameters(parameters: dict[str, str]) -> bytes:
    if not parameters:
        return NIL
    words = [
        string(word)
        for name, value in parameters.items()
        for word in (name.upper().encode(), encoded(value).encode())
    ]
    return b"(" + b" ".join(words) + b")"
