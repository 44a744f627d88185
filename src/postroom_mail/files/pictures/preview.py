"""A preview of a file: the first page of a PDF, or a JPEG, PNG, GIF or WebP, rendered by pdfium as PNG.

A picture is embedded in a PDF as it is, and pdfium reads it; GIF, WebP and interlaced PNG are decoded first.
"""

import struct
import zlib

from postroom_mail.files.pictures.drawing import PNG_MARK, drawn, page_of_colours, page_of_picture
from postroom_mail.files.pictures.gif import GIF_MARKS, first_picture
from postroom_mail.files.pictures.png import indexed, page_of_png
from postroom_mail.files.pictures.webp import is_webp, webp_picture

MAX_PIXELS = 60_000_000  # of a picture: more would only be made to fill the memory
MAX_UNPACKED_PIXELS = 16_000_000
JPEG_MARK, PDF_MARK = b"\xff\xd8\xff", b"%PDF-"
PDF_SEARCHED_BYTES = 1024
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_JPEG_COLOURS = {1: b"/DeviceGray", 3: b"/DeviceRGB", 4: b"/DeviceCMYK"}


def preview(content: bytes) -> bytes | None:
    """Return a PNG, at most 800 pixels wide and high. None for a kind of file without a preview."""
    page = _page(content)
    if page is not None:
        return drawn(page, 1.0)
    return drawn(content, 2.0) if PDF_MARK in content[:PDF_SEARCHED_BYTES] else None


def _page(content: bytes) -> bytes | None:
    """Return the picture as a page."""
    if content.startswith(PNG_MARK):
        return page_of_png(content, MAX_PIXELS, MAX_UNPACKED_PIXELS)
    if content.startswith(JPEG_MARK):
        return _page_of_jpeg(content)
    if content.startswith(GIF_MARKS):
        return _page_of_gif(content)
    return _page_of_webp(content) if is_webp(content) else None


def _page_of_jpeg(content: bytes) -> bytes | None:
    place = 2
    while place + 10 <= len(content) and content[place] == 0xFF:
        marker, size = content[place + 1], int.from_bytes(content[place + 2 : place + 4])
        if marker in _JPEG_FRAMES:
            depth, height, width, values = struct.unpack(">BHHB", content[place + 4 : place + 10])
            if depth != 8 or values not in _JPEG_COLOURS or not 0 < width * height <= MAX_PIXELS:
                return None
            return page_of_picture(width, height, 8, _JPEG_COLOURS[values], b"/DCTDecode", content)
        place += 2 + size
    return None


def _page_of_gif(content: bytes) -> bytes | None:
    picture = first_picture(content, MAX_UNPACKED_PIXELS)
    if picture is None or len(picture.palette) < 3:
        return None
    rows = zlib.compress(picture.rows, 1)
    return page_of_picture(picture.width, picture.height, 8, indexed(picture.palette), b"/FlateDecode", rows)


def _page_of_webp(content: bytes) -> bytes | None:
    picture = webp_picture(content, MAX_UNPACKED_PIXELS)
    return None if picture is None else page_of_colours(picture.width, picture.height, picture.rows)
