"""Compound files (MS-CFB): the folders and streams of doc, ppt, xls and msg. Cyclic chains are detected."""

import struct
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct, field

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Streams may share sectors, so that together they can be far longer than the file.
MAX_READ_BYTES = 64 * 1024 * 1024
# Folders may share their contents, or contain each other.
MAX_VISITS = 500_000
STORAGE, STREAM, ROOT = 1, 2, 5

_HEADER = struct.Struct("<24xHHHHH6xIIIIIIIII")
_ENTRY = struct.Struct("<64sHBxIII36xIQ")
_MAX_SECTOR = 0xFFFFFFFA


class UnreadableCompoundFile(Exception):
    """The header or the directory is invalid."""


class DirectoryEntry(NamedTuple):
    name: str
    kind: int
    left: int
    right: int
    child: int
    start: int
    size: int


class CompoundFile(Struct):
    """Streams by name. A folder is the number of its entry; the root is 0."""

    content: bytes
    sector_bytes: int
    small_limit: int
    sectors: "array[int]"
    small_sectors: "array[int]" = field(default_factory=lambda: array("I"))
    entries: list[DirectoryEntry] = field(default_factory=list)
    small_stream: bytes = b""
    bytes_left: int = MAX_READ_BYTES
    visits_left: int = MAX_VISITS

    @classmethod
    def open(cls, content: bytes) -> "CompoundFile":
        if not content.startswith(MAGIC) or len(content) < 512:
            raise UnreadableCompoundFile("no header")
        fields = _HEADER.unpack_from(content)
        shift, small_shift, folder, small_limit, small_table = (*fields[3:5], *fields[7:8], *fields[9:11])
        if shift not in (9, 12) or small_shift != 6:
            raise UnreadableCompoundFile("unusual sectors")
        file = cls(content, 1 << shift, min(small_limit, 4096), array("I"))
        file.sectors = file._table(fields[12])
        file.entries = [_entry(*raw) for raw in _ENTRY.iter_unpack(_whole(file._read(folder, len(content))))]
        file.small_sectors = _numbers(file._read(small_table, len(content)))
        if not file.entries or file.entries[0].kind != ROOT:
            raise UnreadableCompoundFile("no root")
        file.small_stream = file._read(file.entries[0].start, file.entries[0].size)
        return file

    def _table(self, extension: int) -> "array[int]":
        """Return for every sector the next of its chain; the header, or an extension of it, says where."""
        per_sector = self.sector_bytes // 4
        most = len(self.content) // self.sector_bytes // per_sector + 1
        places = [place for place in struct.unpack_from("<109I", self.content, 76) if place < _MAX_SECTOR]
        seen: set[int] = set()
        while len(places) < most and extension < _MAX_SECTOR and extension not in seen:
            seen.add(extension)
            *more, extension = _numbers(self._sector(extension)) or (_MAX_SECTOR,)
            places += (place for place in more if place < _MAX_SECTOR)
        return _numbers(b"".join(map(self._sector, places[:most])))

    def _sector(self, place: int) -> bytes:
        start = (place + 1) * self.sector_bytes
        return self.content[start : start + self.sector_bytes]

    def _read(self, start: int, size: int) -> bytes:
        size = min(size, self.bytes_left)
        chain = _chain(self.sectors, start, -(-size // self.sector_bytes))
        read = b"".join(map(self._sector, chain))[:size]
        self.bytes_left -= len(read)
        return read

    def _read_small(self, start: int, size: int) -> bytes:
        size = min(size, self.bytes_left)
        chain = _chain(self.small_sectors, start, -(-size // 64))
        read = b"".join(self.small_stream[place * 64 : place * 64 + 64] for place in chain)[:size]
        self.bytes_left -= len(read)
        return read

    def items(self, folder: int = 0) -> dict[str, int]:
        """Return the names in a folder, in lower case, with their entry numbers."""
        found: dict[str, int] = {}
        seen: set[int] = set()
        waiting = [self.entries[folder].child]
        while waiting and self.visits_left > 0:
            self.visits_left -= 1
            place = waiting.pop()
            if place < len(self.entries) and place not in seen:
                seen.add(place)
                entry = self.entries[place]
                found.setdefault(entry.name.lower(), place)
                waiting += (entry.left, entry.right)
        return found

    def stream(self, name: str, folder: int = 0) -> bytes:
        """Return the bytes of a stream; none if there is no such stream."""
        place = self.items(folder).get(name.lower())
        return b"" if place is None else self.stream_at(place)

    def stream_at(self, place: int) -> bytes:
        entry = self.entries[place]
        if entry.kind != STREAM:
            return b""
        read = self._read_small if entry.size < self.small_limit else self._read
        return read(entry.start, entry.size)


def _chain(table: "array[int]", place: int, most: int) -> Iterator[int]:
    seen: set[int] = set()
    while place < len(table) and place not in seen and len(seen) < most:
        seen.add(place)
        yield place
        place = table[place]


def _numbers(raw: bytes) -> "array[int]":
    return array("I", struct.unpack(f"<{len(raw) // 4}I", raw[: len(raw) // 4 * 4]))


def _whole(raw: bytes) -> bytes:
    return raw[: len(raw) // _ENTRY.size * _ENTRY.size]


def _entry(
    letters: bytes, length: int, kind: int, left: int, right: int, child: int, start: int, size: int
) -> DirectoryEntry:
    name = letters[: max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
    # Version 3 has sizes of 32 bits, and some writers leave garbage above them.
    return DirectoryEntry(name, kind, left, right, child, start, size & 0xFFFFFFFF)
