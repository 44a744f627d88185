"""Decodes Content-Transfer-Encoding as far as possible: damaged base64 gives its readable part."""

import binascii
import re

from msgspec import Struct

MAX_UU_LINES = 1_000_000
MAX_BASE64_PIECES = 500_000

# Ignored inside base64 (RFC 2045 section 6.8).
_NOT_BASE64 = bytes(
    set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
)
_WHITESPACE = b" \t\r\n\v\f"
_PADDING = re.compile(rb"=++")
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*+\n", re.MULTILINE)


class Decoded(Struct, frozen=True):
    content: bytes
    is_damaged: bool


def decode(data: bytes, encoding: str) -> Decoded:
    words = encoding.replace(";", " ").split(None, 1)
    match words[0].lower() if words else "":
        case "base64":
            return _decode_base64(data)
        case "quoted-printable":
            return Decoded(binascii.a2b_qp(data), False)
        case "x-uuencode" | "uuencode" | "x-uue" | "uue":
            return _decode_uu(data)
        case _:  # 7bit, 8bit and binary encode nothing (RFC 2045 section 6.2)
            return Decoded(data, False)


def _decode_base64(data: bytes) -> Decoded:
    end = data.rstrip(b"= \t\r\n")
    if b"=" in end:
        return _decode_base64_pieces(data)
    try:
        return Decoded(binascii.a2b_base64(data), False)
    except binascii.Error:
        return Decoded(_decode_unpadded(data.translate(None, _NOT_BASE64)), True)


def _decode_base64_pieces(data: bytes) -> Decoded:
    """Decode pieces: some senders pad every line; anything else (a list's footer) ends the data."""
    decoded: list[bytes] = []
    pieces = _PADDING.split(data.translate(None, _WHITESPACE), MAX_BASE64_PIECES)
    for piece in pieces[:MAX_BASE64_PIECES]:
        if decoded and piece.translate(None, _NOT_BASE64) != piece:
            break
        decoded.append(_decode_unpadded(piece.translate(None, _NOT_BASE64)))
    return Decoded(b"".join(decoded), True)


def _decode_unpadded(letters: bytes) -> bytes:
    letters = letters.rstrip(b"=")
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    return binascii.a2b_base64(letters + b"==")


def _decode_uu(data: bytes) -> Decoded:
    begin = _UU_BEGIN.search(data)
    if begin is None:
        return Decoded(data, True)
    decoded = []
    for line in data[begin.end() :].split(b"\n", MAX_UU_LINES)[:MAX_UU_LINES]:
        content = _decode_uu_line(line.rstrip(b"\r"))
        if not content:
            break
        decoded.append(content)
    return Decoded(b"".join(decoded), False)


def _decode_uu_line(line: bytes) -> bytes:
    """Decode one line; b"" ends the file. Some encoders write more than the length byte says."""
    if not line or line == b"end":
        return b""
    encoded_bytes = (((line[0] - 32) & 63) * 4 + 5) // 3
    try:
        return binascii.a2b_uu(line[: encoded_bytes + 1])
    except binascii.Error:
        return b""
