"""The first picture of a GIF, as rows of palette indexes."""

import struct
from collections.abc import Iterator

from msgspec import Struct

GIF_MARKS = (b"GIF87a", b"GIF89a")
MAX_CODES = 4_096
EXTENSION, PICTURE = 0x21, 0x2C
HAS_PALETTE, IS_INTERLACED, PALETTE_SIZE = 0x80, 0x40, 0x07
# Interlacing: where each pass begins, and the distance between its rows.
PASSES = ((0, 8), (4, 8), (2, 4), (1, 2))


class IndexedPicture(Struct, frozen=True):
    width: int
    height: int
    palette: bytes
    rows: bytes


def first_picture(content: bytes, max_pixels: int) -> IndexedPicture | None:
    if not content.startswith(GIF_MARKS) or len(content) < 13:
        return None
    palette, place = _palette(content, content[10], 13)
    while content[place : place + 1] == bytes((EXTENSION,)):
        _, place = _blocks(content, place + 2)
    if content[place : place + 1] != bytes((PICTURE,)) or place + 11 > len(content):
        return None
    width, height, flags = struct.unpack_from("<HHB", content, place + 5)
    own, place = _palette(content, flags, place + 10)
    if not (own or palette) or not 0 < width * height <= max_pixels or place >= len(content):
        return None
    packed, _ = _blocks(content, place + 1)
    rows = _unpacked(packed, min(content[place], 8), width * height)
    return IndexedPicture(width, height, own or palette, _ordered(rows, width, height, flags))


def _palette(content: bytes, flags: int, place: int) -> tuple[bytes, int]:
    size = 3 * 2 ** ((flags & PALETTE_SIZE) + 1) if flags & HAS_PALETTE else 0
    return content[place : place + size], place + size


def _blocks(content: bytes, place: int) -> tuple[bytes, int]:
    """Return the joined content of blocks of at most 255 bytes, and where they end."""
    parts: list[bytes] = []
    while place < len(content) and content[place]:
        parts.append(content[place + 1 : place + 1 + content[place]])
        place += 1 + content[place]
    return b"".join(parts), place + 1


def _unpacked(packed: bytes, bits: int, size: int) -> bytes:
    """Unpack LZW; missing pixels of a damaged file get the first colour."""
    parts: list[bytes] = []
    room = size
    for piece in _pieces(packed, bits):
        parts.append(piece)
        room -= len(piece)
        if room <= 0:
            break
    return b"".join(parts)[:size].ljust(size, b"\x00")


def _pieces(packed: bytes, bits: int) -> Iterator[bytes]:
    clear = 1 << bits
    start = [bytes((number,)) for number in range(clear)] + [b"", b""]
    table, wide, last = list(start), bits + 1, b""
    held = count = 0
    for byte in packed:
        held |= byte << count
        count += 8
        while count >= wide:
            code, held, count = held & ((1 << wide) - 1), held >> wide, count - wide
            if code == clear:
                table, wide, last = list(start), bits + 1, b""
                continue
            if code == clear + 1 or code > len(table) or (code == len(table) and not last):
                return
            piece = table[code] if code < len(table) else last + last[:1]
            yield piece
            if last and len(table) < MAX_CODES:
                table.append(last + piece[:1])
                wide += len(table) == 1 << wide and wide < 12
            last = piece


def _ordered(rows: bytes, width: int, height: int, flags: int) -> bytes:
    if not flags & IS_INTERLACED:
        return rows
    order = [row for begin, step in PASSES for row in range(begin, height, step)]
    places = sorted(range(height), key=order.__getitem__)
    return b"".join(rows[place * width : (place + 1) * width] for place in places)
