"""A small picture of a file: the first page of a PDF, or a JPEG, PNG or GIF, drawn by pdfium, as PNG.

A picture is put into a PDF as it is, and pdfium reads it; a GIF is unpacked first.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

from postroom.extraction.formats.gif import GIF_MARKS, first_picture

MAX_SIDE = 800
MAX_PIXELS = 60_000_000  # of a picture: more would only be made to fill the memory
MAX_GIF_PIXELS = 16_000_000
PNG_MARK, JPEG_MARK, PDF_MARK = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"%PDF-"
PDF_SEARCHED_BYTES = 1024
# By the type of colour of a PNG: how many values a pixel has, and the colours they mean.
_COLOURS = {0: (1, b"/DeviceGray"), 2: (3, b"/DeviceRGB"), 3: (1, b""), 4: (2, b""), 6: (4, b"")}
_WITHOUT_ALPHA = {
    4: (b"[/G /A]", b"/DeviceGray", b"0 1 0 1"),
    6: (b"[/R /G /B /A]", b"/DeviceRGB", b"0 1 0 1 0 1 0 1"),
}
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_JPEG_COLOURS = {1: b"/DeviceGray", 3: b"/DeviceRGB", 4: b"/DeviceCMYK"}


def preview(content: bytes) -> bytes | None:
    """As PNG, at most 800 pixels wide and high. None: a kind of file without one."""
    if content.startswith(PNG_MARK):
        return _drawn(_of_png(content), 1.0)
    if content.startswith(JPEG_MARK):
        return _drawn(_of_jpeg(content), 1.0)
    if content.startswith(GIF_MARKS):
        return _drawn(_of_gif(content), 1.0)
    return _drawn(content if PDF_MARK in content[:PDF_SEARCHED_BYTES] else None, 2.0)


def _drawn(document: bytes | None, largest_scale: float) -> bytes | None:
    if document is None:
        return None
    import pypdfium2  # only the extraction child pays for it

    opened = pypdfium2.PdfDocument(document)
    try:
        if not len(opened):
            return None
        page = opened[0]
        width, height = page.get_size()
        scale = min(MAX_SIDE / max(width, height, 1), largest_scale)
        bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
        return _png(bitmap)
    finally:
        opened.close()


def _png(bitmap: Any) -> bytes:
    width, height, channels, stride = bitmap.width, bitmap.height, bitmap.n_channels, bitmap.stride
    rows = memoryview(bitmap.buffer)
    lines = b"".join(b"\x00" + bytes(rows[y * stride : y * stride + width * channels]) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = (_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(lines, 6)), _chunk(b"IEND", b""))
    return PNG_MARK + b"".join(chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _of_png(content: bytes) -> bytes | None:
    """Its compressed rows are what a PDF calls Flate with predictors, unless they are interlaced."""
    chunks = list(_chunks(content))
    head = next((data for name, data in chunks if name == b"IHDR" and len(data) == 13), None)
    if head is None:
        return None
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", head)
    if interlace or colour not in _COLOURS or not _is_drawable(width, height):
        return None
    values, space = _COLOURS[colour]
    decode = b""
    if colour == 3:
        palette = next((data for name, data in chunks if name == b"PLTE"), b"")[:768]
        if len(palette) < 3:
            return None
        space = _indexed(palette)
    elif colour in _WITHOUT_ALPHA:
        names, plain, domain = _WITHOUT_ALPHA[colour]
        space = b"[/DeviceN %s %s 5 0 R]" % (names, plain)
        decode = domain
    rows = b"".join(data for name, data in chunks if name == b"IDAT")
    filters = b"/FlateDecode /DecodeParms << /Predictor 15 /Colors %d /BitsPerComponent %d /Columns %d >>"
    filters %= (values, depth, width)
    return _pdf(width, height, depth, space, filters, rows, decode)


def _indexed(palette: bytes) -> bytes:
    return b"[/Indexed /DeviceRGB %d <%s>]" % (len(palette) // 3 - 1, palette.hex().encode())


def _of_gif(content: bytes) -> bytes | None:
    picture = first_picture(content, MAX_GIF_PIXELS)
    if picture is None or len(picture.palette) < 3:
        return None
    rows = zlib.compress(picture.rows, 1)
    return _pdf(picture.width, picture.height, 8, _indexed(picture.palette), b"/FlateDecode", rows)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(PNG_MARK)
    while place + 8 <= len(content):
        size, name = struct.unpack(">I4s", content[place : place + 8])
        yield name, content[place + 8 : place + 8 + size]
        place += 12 + size


def _of_jpeg(content: bytes) -> bytes | None:
    place = 2
    while place + 10 <= len(content) and content[place] == 0xFF:
        marker, size = content[place + 1], int.from_bytes(content[place + 2 : place + 4])
        if marker in _JPEG_FRAMES:
            depth, height, width, values = struct.unpack(">BHHB", content[place + 4 : place + 10])
            if depth != 8 or values not in _JPEG_COLOURS or not _is_drawable(width, height):
                return None
            return _pdf(width, height, 8, _JPEG_COLOURS[values], b"/DCTDecode", content)
        place += 2 + size
    return None


def _is_drawable(width: int, height: int) -> bool:
    return width > 0 and height > 0 and width * height <= MAX_PIXELS


def _pdf(
    width: int, height: int, depth: int, space: bytes, filters: bytes, data: bytes, domain: bytes = b""
) -> bytes:
    """One page that is the picture. `domain` is of a function that leaves out how transparent it is."""
    scale = min(1.0, MAX_SIDE / max(width, height))
    wide, high = max(width * scale, 1.0), max(height * scale, 1.0)
    drawing = b"q %.2f 0 0 %.2f 0 0 cm /P Do Q" % (wide, high)
    picture = b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent %d /ColorSpace %s"
    picture %= (width, height, depth, space)
    function = b"{ pop }"
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %.2f %.2f] /Contents 4 0 R"
        b" /Resources << /XObject << /P 6 0 R >> >> >>" % (wide, high),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
        b"<< /FunctionType 4 /Domain [%s] /Range [%s] /Length %d >>\nstream\n%s\nendstream"
        % (domain or b"0 1", domain[: max(len(domain) - 4, 3)] or b"0 1", len(function), function),
        b"%s /Filter %s /Length %d >>\nstream\n%s\nendstream" % (picture, filters, len(data), data),
    ]
    written = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(written)
    return b"".join((written, b"xref\n0 7\n0000000000 65535 f \n", table, end))
