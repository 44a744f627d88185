"""A PNG on a page: its compressed rows are what a PDF calls Flate with predictors.

An interlaced one is seven pictures, which are drawn one by one and interleaved.
"""

import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

from postroom_mail.files.pictures.drawing import (
    MAX_SIDE,
    PNG_MARK,
    page_of_colours,
    page_of_picture,
    rendered,
    rows_of,
)

# By colour type: values per pixel, and the colours they mean.
_COLOURS = {0: (1, b"/DeviceGray"), 2: (3, b"/DeviceRGB"), 3: (1, b""), 4: (2, b""), 6: (4, b"")}
_WITHOUT_ALPHA = {
    4: (b"[/G /A]", b"/DeviceGray", b"0 1 0 1"),
    6: (b"[/R /G /B /A]", b"/DeviceRGB", b"0 1 0 1 0 1 0 1"),
}


class Pass(Struct, frozen=True):
    """The first pixel and the steps to the right and down of an interlacing pass (PNG, 8.2)."""

    x: int
    y: int
    right: int
    down: int

    def size(self, width: int, height: int) -> tuple[int, int]:
        return max(0, -((self.x - width) // self.right)), max(0, -((self.y - height) // self.down))


PASSES = (
    Pass(0, 0, 8, 8),
    Pass(4, 0, 8, 8),
    Pass(0, 4, 4, 8),
    Pass(2, 0, 4, 4),
    Pass(0, 2, 2, 4),
    Pass(1, 0, 2, 2),
    Pass(0, 1, 1, 2),
)


class Rows(Struct, frozen=True):
    """The format of rows: values per pixel, bits per value, and colours."""

    values: int
    depth: int
    space: bytes
    domain: bytes

    def size_bytes(self, width: int, height: int) -> int:
        """Return the size of a pass.

        The first byte of a row is its filter type; one without pixels has no rows.
        """
        return (1 + (width * self.values * self.depth + 7) // 8) * height if width else 0

    def page(self, width: int, height: int, data: bytes, largest_side: int = MAX_SIDE) -> bytes:
        filters = b"/FlateDecode /DecodeParms << /Predictor 15 /Colors %d /BitsPerComponent %d /Columns %d >>"
        filters %= (self.values, self.depth, width)
        return page_of_picture(
            width, height, self.depth, self.space, filters, data, self.domain, largest_side
        )


def page_of_png(content: bytes, max_pixels: int, max_interlaced_pixels: int) -> bytes | None:
    found = list(chunks(content))
    head = next((data for name, data in found if name == b"IHDR" and len(data) == 13), None)
    if head is None:
        return None
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", head)
    rows = _rows(depth, colour, next((data for name, data in found if name == b"PLTE"), b"")[:768])
    if rows is None or not 0 < width * height <= (max_interlaced_pixels if interlace else max_pixels):
        return None
    data = b"".join(data for name, data in found if name == b"IDAT")
    return _page_of_passes(width, height, rows, data) if interlace else rows.page(width, height, data)


def _rows(depth: int, colour: int, palette: bytes) -> Rows | None:
    if colour not in _COLOURS or (colour == 3 and len(palette) < 3):
        return None
    values, space = _COLOURS[colour]
    if colour == 3:
        return Rows(values, depth, indexed(palette), b"")
    if colour in _WITHOUT_ALPHA:
        names, plain, domain = _WITHOUT_ALPHA[colour]
        return Rows(values, depth, b"[/DeviceN %s %s 5 0 R]" % (names, plain), domain)
    return Rows(values, depth, space, b"")


def _page_of_passes(width: int, height: int, rows: Rows, data: bytes) -> bytes:
    sizes = [rows.size_bytes(*each.size(width, height)) for each in PASSES]
    unpacked = zlib.decompressobj().decompress(data, sum(sizes)).ljust(sum(sizes), b"\x00")
    whole = bytearray(width * height * 3)
    place = 0
    for each, size in zip(PASSES, sizes, strict=True):
        _put_between(whole, width, height, each, rows, unpacked[place : place + size])
        place += size
    return page_of_colours(width, height, bytes(whole))


def _put_between(whole: bytearray, width: int, height: int, each: Pass, rows: Rows, data: bytes) -> None:
    wide, high = each.size(width, height)
    if not wide or not high:
        return
    side = max(wide, high)
    bitmap = rendered(rows.page(wide, high, zlib.compress(data, 1), side), 1.0, side)
    for number, row in enumerate(rows_of(bitmap)):
        start = (each.y + number * each.down) * width * 3
        for value in range(3):
            first = start + each.x * 3 + value
            whole[first : start + width * 3 : each.right * 3] = row[value::3]


def indexed(palette: bytes) -> bytes:
    return b"[/Indexed /DeviceRGB %d <%s>]" % (len(palette) // 3 - 1, palette.hex().encode())


def chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(PNG_MARK)
    while place + 8 <= len(content):
        size, name = struct.unpack(">I4s", content[place : place + 8])
        yield name, content[place + 8 : place + 8 + size]
        place += 12 + size
