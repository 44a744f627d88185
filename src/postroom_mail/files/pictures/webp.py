"""The picture of a WebP file, decoded by the system's libwebp if installed."""

import ctypes
import struct
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

LIBRARIES = ("libwebp.so.7", "libwebp.so.6", "libwebp.7.dylib", "libwebp.dll")
HEAD = struct.Struct("<4sI4s")
CHUNK = struct.Struct("<4sI")
PICTURES = (b"VP8 ", b"VP8L")
FRAME, FRAME_HEAD_BYTES = b"ANMF", 16


class ColourPicture(Struct, frozen=True):
    """Rows of red, green and blue."""

    width: int
    height: int
    rows: bytes


def is_webp(content: bytes) -> bool:
    return content[:4] == b"RIFF" and content[8:12] == b"WEBP"


def webp_picture(content: bytes, max_pixels: int) -> ColourPicture | None:
    """Return the first frame. None if the file is damaged or too large, or cannot be read here."""
    library, still = _library(), _still(content)
    if library is None or still is None:
        return None
    width, height = ctypes.c_int(), ctypes.c_int()
    if not library.WebPGetInfo(still, len(still), ctypes.byref(width), ctypes.byref(height)):
        return None
    if not 0 < width.value * height.value <= max_pixels:
        return None
    rows = ctypes.create_string_buffer(width.value * height.value * 3)
    if not library.WebPDecodeRGBInto(still, len(still), rows, len(rows), width.value * 3):
        return None
    return ColourPicture(width.value, height.value, rows.raw)


@cache
def _library() -> ctypes.CDLL | None:
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        size, place = ctypes.c_size_t, ctypes.c_char_p
        library.WebPGetInfo.argtypes = (place, size, ctypes.c_void_p, ctypes.c_void_p)
        library.WebPDecodeRGBInto.argtypes = (place, size, place, size, ctypes.c_int)
        library.WebPDecodeRGBInto.restype = ctypes.c_void_p
        return library
    return None


def _still(content: bytes) -> bytes | None:
    """Return a file with only the first picture, without transparency."""
    for name, data in _chunks(content, HEAD.size):
        if name in PICTURES:
            return _file(name, data)
        if name == FRAME:
            inside = _chunks(data, FRAME_HEAD_BYTES)
            return next((_file(kind, piece) for kind, piece in inside if kind in PICTURES), None)
    return None


def _chunks(content: bytes, place: int) -> Iterator[tuple[bytes, bytes]]:
    while place + CHUNK.size <= len(content):
        name, size = CHUNK.unpack_from(content, place)
        place += CHUNK.size
        yield name, content[place : place + size]
        place += size + size % 2


def _file(name: bytes, data: bytes) -> bytes:
    chunk = CHUNK.pack(name, len(data)) + data + b"\x00" * (len(data) % 2)
    return HEAD.pack(b"RIFF", 4 + len(chunk), b"WEBP") + chunk
