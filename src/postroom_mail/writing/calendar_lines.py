"""Lines of a calendar file (RFC 5545, section 3.1): escaped and folded; no value can begin another line."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime

from postroom_mail.mime.address import Address
from postroom_mail.reading.content_lines import writable

FOLD_BYTES = 75
_ESCAPED = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})
_OUTSIDE_QUOTES = re.compile(r'[\x00-\x1f"\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SIMPLE_VALUE = re.compile(r"[\w.+@/ -]*", re.ASCII)


def to_bytes(lines: Iterable[str]) -> bytes:
    return b"".join(map(_folded, lines))


def _folded(line: str) -> bytes:
    """Fold at 75 octets per line, between characters; a continuation begins with a space."""
    if len(line) < FOLD_BYTES and line.isascii():
        return line.encode() + b"\r\n"
    pieces: list[bytes] = []
    piece = b""
    for letter in line:
        written = letter.encode()
        if len(piece) + len(written) > FOLD_BYTES:
            pieces.append(piece)
            piece = b" "
        piece += written
    return b"\r\n".join([*pieces, piece, b""])


def text(name: str, value: str) -> str:
    return f"{name}:{writable(value).translate(_ESCAPED)}"


def parameter(name: str, value: str) -> str:
    """Return a parameter, quoted if needed; a quote itself cannot be written (section 3.2)."""
    plain = _OUTSIDE_QUOTES.sub("", value)
    return f";{name}={plain}" if _SIMPLE_VALUE.fullmatch(plain) else f';{name}="{plain}"'


def person(name: str, address: Address, *parameters: str) -> str:
    shown = parameter("CN", address.name) if address.name else ""
    written = _OUTSIDE_QUOTES.sub("", address.address)
    return f"{name}{''.join(parameters)}{shown}:mailto:{written}"


def moment(name: str, value: date, zone: str = "") -> str:
    """Return a day, a local time of a zone, or without one a time in UTC."""
    if not isinstance(value, datetime):
        return f"{name};VALUE=DATE:{value:%Y%m%d}"
    if zone:
        return f"{name}{parameter('TZID', zone)}:{value:%Y%m%dT%H%M%S}"
    return f"{name}:{stamp(value)}"


def stamp(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y%m%dT%H%M%SZ}"
