"""Renders one page of a PDF, and wraps a picture in such a page, so that pdfium decodes and scales it."""

import struct
import zlib
from typing import Any

from postroom_mail.files.pdf.pdfium import load_pdfium

MAX_SIDE = 800
PNG_MARK = b"\x89PNG\r\n\x1a\n"


def drawn(document: bytes, largest_scale: float) -> bytes | None:
    """Draw the first page as PNG, at most 800 pixels wide and high; None if there is no page."""
    bitmap = rendered(document, largest_scale, MAX_SIDE)
    return None if bitmap is None else _png(bitmap)


def rendered(document: bytes, largest_scale: float, largest_side: int) -> Any:
    opened = load_pdfium().PdfDocument(document)
    try:
        if not len(opened):
            return None
        page = opened[0]
        width, height = page.get_size()
        scale = min(largest_side / max(width, height, 1), largest_scale)
        return page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
    finally:
        opened.close()


def rows_of(bitmap: Any) -> list[bytes]:
    """Return the rows without their padding."""
    pixels, wide, stride = memoryview(bitmap.buffer), bitmap.width * bitmap.n_channels, bitmap.stride
    return [bytes(pixels[y * stride : y * stride + wide]) for y in range(bitmap.height)]


def _png(bitmap: Any) -> bytes:
    lines = b"".join(b"\x00" + row for row in rows_of(bitmap))
    colour = 2 if bitmap.n_channels == 3 else 0
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, colour, 0, 0, 0)
    chunks = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 6)), chunk(b"IEND", b""))
    return PNG_MARK + b"".join(chunks)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def page_of_colours(width: int, height: int, rows: bytes) -> bytes:
    """Return a page made from rows of red, green and blue."""
    return page_of_picture(width, height, 8, b"/DeviceRGB", b"/FlateDecode", zlib.compress(rows, 1))


def page_of_picture(
    width: int,
    height: int,
    depth: int,
    space: bytes,
    filters: bytes,
    data: bytes,
    domain: bytes = b"",
    largest_side: int = MAX_SIDE,
) -> bytes:
    """Return one page that is the picture. `domain` is of a function that drops the transparency."""
    scale = min(1.0, largest_side / max(width, height))
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
