"""Framing of records in a segment, so that whole records are found behind damaged bytes.

Each record begins with the marker of its segment: random bytes that no sender knows. So content that imitates
a record, even with valid checksums, is never taken for one. The head also holds the record's number in its
segment: a copy of a record that the disk left in a second place is recognised.
"""

import errno
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

Record = Sequence[bytes]  # in parts, so that a large email is not copied

MARKER_BYTES = 16
HEAD = struct.Struct(">16sIIII")  # marker, number, length, checksum of both, checksum of the record
NUMBER_AND_LENGTH = struct.Struct(">II")
FIRST_HEAD = struct.Struct(">II")  # of the first format: the length of a record and its checksum
SCAN_BYTES = 1024 * 1024
SECTOR_BYTES = 4096  # the smallest piece that a disk fails to read


class Piece(NamedTuple):
    """A whole record from `start` to `end`, or damage in its place (`record` is None)."""

    start: int
    end: int
    record: bytes | None


class Framing(Protocol):
    """Reads records of one segment. `limit` is where its bytes end."""

    def step(self, file: int, start: int, limit: int) -> Piece:
        """Return the record at `start`, or the damage up to the next whole record or to the limit."""

    def is_torn(self, tail: bytes) -> bool:
        """Return whether a crash left this tail: the beginning of a record whose end was never written."""


def framed(record: Record, marker: bytes, number: int) -> Iterator[bytes]:
    """Return the parts to write: a head, and the record. Checksums cover the number and the length, too."""
    size = sum(map(len, record))
    checksum = of_head = zlib.crc32(NUMBER_AND_LENGTH.pack(number, size))
    for part in record:
        checksum = zlib.crc32(part, checksum)
    yield HEAD.pack(marker, number, size, of_head, checksum)
    yield from record


class MarkedFraming:
    """Records with a marker. Stateful: knows the numbers it has returned, for one pass over one segment."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._seen: set[int] = set()

    def step(self, file: int, start: int, limit: int) -> Piece:
        for at in self._candidates(file, start, limit):
            if (found := self._record(file, at, limit)) is not None:
                number, record = found
                if at > start:
                    return Piece(start, at, None)
                self._seen.add(number)
                return Piece(start, start + HEAD.size + len(record), record)
        return Piece(start, limit, None)

    def is_torn(self, tail: bytes) -> bool:
        """Return whether the tail was cut off. A file system may leave zeros where nothing was written."""
        written = tail.rstrip(b"\0")
        if len(written) < HEAD.size:
            return self._marker.startswith(written[:MARKER_BYTES]) or written.startswith(self._marker)
        marker, number, size, of_head, _ = HEAD.unpack_from(written)
        is_head = marker == self._marker and of_head == zlib.crc32(NUMBER_AND_LENGTH.pack(number, size))
        return bool(is_head) and len(written) < HEAD.size + int(size)

    def _candidates(self, file: int, start: int, limit: int) -> Iterator[int]:
        """Return where a record may begin: at the start, and at each marker behind it."""
        yield start
        offset = start + 1
        while len(piece := read_at(file, min(SCAN_BYTES, limit - offset), offset)) >= MARKER_BYTES:
            at = piece.find(self._marker)
            while at >= 0:
                yield offset + at
                at = piece.find(self._marker, at + 1)
            offset += len(piece) - MARKER_BYTES + 1

    def _record(self, file: int, at: int, limit: int) -> tuple[int, bytes] | None:
        """Return None if it is not whole, or was returned before."""
        head = read_at(file, min(HEAD.size, limit - at), at)
        if len(head) < HEAD.size:
            return None
        marker, number, size, of_head, checksum = HEAD.unpack(head)
        if marker != self._marker or of_head != zlib.crc32(NUMBER_AND_LENGTH.pack(number, size)):
            return None
        if number in self._seen or size > limit - at - HEAD.size:
            return None
        record = read_at(file, size, at + HEAD.size)
        return (number, record) if zlib.crc32(record, of_head) == checksum else None


class FirstFraming:
    """Records of the first format. Nothing marks where one begins, and content could imitate it.

    So behind a damaged record the next one is looked for only where lengths lead, record by record.
    """

    def step(self, file: int, start: int, limit: int) -> Piece:
        record = self._record(file, start, limit)
        if record is not None:
            return Piece(start, start + FIRST_HEAD.size + len(record), record)
        at = start
        while length := self._length(file, at, limit):
            at += FIRST_HEAD.size + length
            if self._record(file, at, limit) is not None:
                return Piece(start, at, None)
        return Piece(start, limit, None)

    def is_torn(self, tail: bytes) -> bool:
        """Return whether the tail was cut off beyond doubt: a length without a checksum may be damaged."""
        return len(tail.rstrip(b"\0")) < FIRST_HEAD.size

    def _length(self, file: int, at: int, limit: int) -> int:
        head = read_at(file, min(FIRST_HEAD.size, limit - at), at)
        return int(FIRST_HEAD.unpack(head)[0]) if len(head) == FIRST_HEAD.size else 0

    def _record(self, file: int, at: int, limit: int) -> bytes | None:
        length = self._length(file, at, limit)
        if not 0 < length <= limit - at - FIRST_HEAD.size:
            return None
        content = read_at(file, FIRST_HEAD.size + length, at)
        checksum, record = FIRST_HEAD.unpack_from(content)[1], content[FIRST_HEAD.size :]
        return record if zlib.crc32(record) == checksum else None


def pieces(framing: Framing, file: int, start: int, limit: int) -> Iterator[Piece]:
    """Yield every record and every damage up to the limit, in order."""
    while start < limit:
        piece = framing.step(file, start, limit)
        yield piece
        start = piece.end


def read_at(file: int, size: int, offset: int) -> bytes:
    """Return the bytes there, with zeros for those that the disk cannot read (EIO): damage like any other."""
    if size <= 0:
        return b""
    try:
        return os.pread(file, size, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    end = min(offset + size, os.fstat(file).st_size)
    borders = [offset, *range(offset - offset % SECTOR_BYTES + SECTOR_BYTES, end, SECTOR_BYTES), end]
    return b"".join(_read_sector(file, end - start, start) for start, end in pairwise(borders))


def _read_sector(file: int, size: int, offset: int) -> bytes:
    try:
        return os.pread(file, size, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return bytes(size)
