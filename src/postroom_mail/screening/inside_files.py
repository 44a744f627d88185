"""The files inside an attached archive, email or notebook: their names, and a bounded beginning of each.

Archives are read as their lists say and as their members lie: programs differ in which one they believe
(APPNOTE 4.3.7 and 4.3.12). No stated length is trusted, and all files of an email share one budget.
"""

import re
import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

MAX_NAMES = 1_000  # of one archive
MAX_MEMBERS = 200  # that are unpacked, of all archives of an email
MAX_UNPACKED_BYTES = 4 * 1024 * 1024
MAX_MEMBER_BYTES = 2 * 1024 * 1024
MAX_BLOCKS = 1_000
MAX_EMBEDDED = 20

_CENTRAL, _LOCAL, _END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
_MAX_COMMENT = 66_000
_STORED, _DEFLATED = 0, 8
_RAR_4, _RAR_5, _SEVEN_ZIP = b"Rar!\x1a\x07\x00", b"Rar!\x1a\x07\x01\x00", b"7z\xbc\xaf\x27\x1c"
_SEVEN_ZIP_AES = b"\x06\xf1\x07\x01"
_RAR_4_FILE, _RAR_4_MAIN, _RAR_5_FILE, _RAR_5_ENCRYPTION = 0x74, 0x73, 2, 4
_GZIP = b"\x1f\x8b\x08"
_NOTEBOOK = bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3")
_EMBEDDED = bytes.fromhex("e716e3bd65261145a4c48d4d0b7a9eac")  # before each file in a notebook
_EMBEDDED_HEAD = 36
_HARMLESS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"RIFF", b"BM", b"II*", b"MM\0*")
_NUMBER_BYTES = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")


class ArchiveContent(Struct, frozen=True):
    """What an archive holds: names, whether one of them is encrypted, and the files that can be read."""

    names: tuple[str, ...] = ()
    is_locked: bool = False
    files: tuple[tuple[str, bytes], ...] = ()


class MemberBudget(Struct):
    """What the archives of an email may cost together."""

    members: int = MAX_MEMBERS
    unpacked: int = MAX_UNPACKED_BYTES

    def unpack(self, content: bytes, start: int, method: int) -> bytes:
        """Return the beginning of a member. Its end is where its compression says, or the next one begins."""
        most = min(MAX_MEMBER_BYTES, self.unpacked)
        if self.members <= 0 or most <= 0:
            return b""
        self.members -= 1
        found = b""
        if method == _STORED:
            ends = [
                at for mark in (_LOCAL, _CENTRAL) if (at := content.find(mark, start, start + most)) > start
            ]
            found = content[start : min(ends, default=start + most)]
            if content.startswith(_LOCAL, start):  # an archive inside: its own marks end nothing
                found = content[start : start + most]
        elif method == _DEFLATED:
            found = inflated(content[start : start + most], -zlib.MAX_WBITS, most)
        self.unpacked -= len(found)
        return found


NOTHING = ArchiveContent()


def read_inside(content: bytes, budget: MemberBudget) -> ArchiveContent:
    if content.startswith(b"PK"):
        return read_zip(content, budget)
    if content.startswith(_RAR_5):
        return _read_rar_5(content)
    if content.startswith(_RAR_4):
        return _read_rar_4(content)
    if content.startswith(_SEVEN_ZIP):
        return ArchiveContent(is_locked=_SEVEN_ZIP_AES in content[-4096:])
    if content.startswith(_GZIP) and budget.unpacked > 0:
        found = inflated(
            content[:MAX_MEMBER_BYTES], 16 + zlib.MAX_WBITS, min(MAX_MEMBER_BYTES, budget.unpacked)
        )
        budget.unpacked -= len(found)
        return ArchiveContent(files=(("", found),))
    if content.startswith(_NOTEBOOK):
        return ArchiveContent(files=tuple(_embedded(content)))
    return NOTHING


def inflated(content: bytes, window: int, most: int) -> bytes:
    try:
        return zlib.decompressobj(window).decompress(content, most)
    except zlib.error:
        return b""


def read_zip(content: bytes, budget: MemberBudget) -> ArchiveContent:
    found: dict[str, bool] = {}
    files: list[tuple[str, bytes]] = []
    end = content.rfind(_END, max(0, len(content) - _MAX_COMMENT))
    if end >= 0 and end + 20 <= len(content):
        (size,) = struct.unpack_from("<I", content, end + 12)
        for name, is_locked, _ in _walk(content, max(0, end - size), _CENTRAL, (8, 28, 46)):
            found[name] = found.get(name, False) or is_locked
    for name, is_locked, place in _walk(content, 0, _LOCAL, (6, 26, 30)):
        found[name] = found.get(name, False) or is_locked
        if not is_locked and not name.endswith("/"):
            (method,) = struct.unpack_from("<H", content, place + 8)
            lengths = struct.unpack_from("<HH", content, place + 26)
            files.append((name, budget.unpack(content, place + 30 + sum(lengths), method)))
    return ArchiveContent(tuple(found), any(found.values()), tuple(files))


def _walk(
    content: bytes, place: int, mark: bytes, offsets: tuple[int, int, int]
) -> Iterator[tuple[str, bool, int]]:
    flags_at, length_at, name_at = offsets
    for _ in range(MAX_NAMES):
        place = content.find(mark, place)
        if place < 0 or place + name_at > len(content):
            return
        (flags,) = struct.unpack_from("<H", content, place + flags_at)
        (length,) = struct.unpack_from("<H", content, place + length_at)
        name = content[place + name_at : place + name_at + length].decode("utf-8", "replace")
        yield name, bool(flags & 1), place
        place += name_at


def _read_rar_4(content: bytes) -> ArchiveContent:
    names: list[str] = []
    is_locked, place = False, len(_RAR_4)
    for _ in range(MAX_BLOCKS):
        if place + 7 > len(content):
            break
        kind, flags, size = struct.unpack_from("<BHH", content, place + 2)
        if kind == _RAR_4_MAIN and flags & 0x80:
            return ArchiveContent(tuple(names), is_locked=True)
        packed = 0
        if flags & 0x8000 and place + 11 <= len(content):
            (packed,) = struct.unpack_from("<I", content, place + 7)
        if kind == _RAR_4_FILE and place + 32 <= len(content):
            (length,) = struct.unpack_from("<H", content, place + 26)
            start = place + (40 if flags & 0x100 else 32)
            names.append(content[start : start + length].partition(b"\0")[0].decode("utf-8", "replace"))
            is_locked = is_locked or bool(flags & 4)
        if size < 7:
            break
        place += size + packed
    return ArchiveContent(tuple(names), is_locked)


def _read_rar_5(content: bytes) -> ArchiveContent:
    names: list[str] = []
    is_locked, place = False, len(_RAR_5)
    for _ in range(MAX_BLOCKS):
        place += 4  # the checksum
        size, body = _number(content, place)
        if not size:
            break
        kind, at = _number(content, body)
        flags, at = _number(content, at)
        extra, at = _number(content, at) if flags & 1 else (0, at)
        packed, at = _number(content, at) if flags & 2 else (0, at)
        if kind == _RAR_5_ENCRYPTION:
            return ArchiveContent(tuple(names), is_locked=True)
        if kind == _RAR_5_FILE:
            of_file, at = _number(content, at)
            _, at = _number(content, at)
            _, at = _number(content, at)
            at += 4 * bool(of_file & 2) + 4 * bool(of_file & 4)
            _, at = _number(content, at)
            _, at = _number(content, at)
            length, at = _number(content, at)
            names.append(content[at : at + min(length, 4096)].decode("utf-8", "replace"))
            record = body + size - extra
            is_locked = is_locked or bool(extra and _number(content, _number(content, record)[1])[0] == 1)
        place = body + size + packed
    return ArchiveContent(tuple(names), is_locked)


def _number(content: bytes, place: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, and the place behind it; 0 if there is none."""
    found = _NUMBER_BYTES.match(content, place) if 0 <= place <= len(content) else None
    if found is None:
        return 0, len(content)
    return sum((byte & 0x7F) << 7 * number for number, byte in enumerate(found[0])), found.end()


def _embedded(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files that a OneNote notebook opens on a double click, without its pictures."""
    place = 0
    for _ in range(MAX_EMBEDDED):
        place = content.find(_EMBEDDED, place)
        if place < 0:
            return
        found = content[place + _EMBEDDED_HEAD : place + _EMBEDDED_HEAD + MAX_MEMBER_BYTES]
        if not found.startswith(_HARMLESS):
            yield "embedded", found
        place += _EMBEDDED_HEAD
