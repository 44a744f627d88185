"""Encoded names of folders: modified UTF-7 (RFC 3501 section 5.1.3), or UTF-8 if the client enabled it."""

import binascii
import re

_ENCODED = re.compile(rb"&([A-Za-z0-9+,]*)-")


class BadName(Exception):
    """Bytes that are no folder name."""


def decode(name: bytes, is_utf8: bool = False) -> str:
    try:
        if is_utf8 or not name.isascii():
            return name.decode()
        return _ENCODED.sub(_decoded, name).decode()
    except (UnicodeError, binascii.Error):
        raise BadName from None


def _decoded(found: re.Match[bytes]) -> bytes:
    if not found[1]:
        return b"&"
    packed = found[1].replace(b",", b"/")
    return binascii.a2b_base64(packed + b"=" * (-len(packed) % 4)).decode("utf-16-be").encode()


def encode(name: str) -> bytes:
    pieces: list[bytes] = []
    other: list[str] = []
    for character in name:
        if " " <= character <= "~":
            _flush(pieces, other)
            pieces.append(b"&-" if character == "&" else character.encode())
        else:
            other.append(character)
    _flush(pieces, other)
    return b"".join(pieces)


def _flush(pieces: list[bytes], other: list[str]) -> None:
    if other:
        packed = binascii.b2a_base64("".join(other).encode("utf-16-be"), newline=False)
        pieces.append(b"&" + packed.rstrip(b"=").replace(b"/", b",") + b"-")
        other.clear()
