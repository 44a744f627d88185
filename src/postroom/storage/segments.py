"""Segments: a folder of files of records, appended and synced together, each with its length and checksum.

A process that begins to write starts a new segment, so that no record ever follows a torn one.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from postroom.storage.data_folder import make_folder, sync_folder

HEAD = struct.Struct(">II")  # the length of a record and its checksum
SEGMENT_BYTES = 16 * 1024 * 1024
PARTS_OF_A_WRITE = 1_000  # the kernel takes 1,024
NAME = "{:016x}"

Record = Sequence[bytes]  # in parts, so that a large mail is not copied


class SegmentPlace(NamedTuple):
    """A position between two records."""

    segment: int = 0
    offset: int = 0


class FoundRecord(NamedTuple):
    """A record, its position and that of the next one."""

    start: SegmentPlace
    end: SegmentPlace
    record: bytes


class DamagedSegment(Exception):
    """There is no whole record at this position; the rest of its segment is unreadable."""

    def __init__(self, start: SegmentPlace, end: SegmentPlace) -> None:
        super().__init__(f"segment {NAME.format(start.segment)} is damaged at {start.offset}")
        self.start, self.end = start, end


class SegmentWriter:
    """Appends records. Synchronous, for one thread."""

    def __init__(self, folder: Path, next_segment: int) -> None:
        self._folder = folder
        self._next = next_segment
        self._file: int | None = None
        self.end = SegmentPlace(next_segment - 1)

    def append(self, records: Sequence[Record]) -> list[SegmentPlace]:
        """Durable on return. Returns the position after each record. After an OSError none is stored."""
        if self._file is None or self.end.offset >= SEGMENT_BYTES:
            self._begin_segment()
        assert self._file is not None
        places, parts = self.end, list(chain.from_iterable(map(_framed, records)))
        try:
            for start in range(0, len(parts), PARTS_OF_A_WRITE):
                _write_all(self._file, parts[start : start + PARTS_OF_A_WRITE])
            os.fdatasync(self._file)
        except OSError:
            self._abandon(places.offset)
            raise
        ends = []
        for record in records:
            places = SegmentPlace(places.segment, places.offset + HEAD.size + sum(map(len, record)))
            ends.append(places)
        self.end = places
        return ends

    def close(self) -> None:
        """The next record starts a new segment."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin_segment(self) -> None:
        self.close()
        path = self._folder / NAME.format(self._next)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.end, self._next = SegmentPlace(self._next), self._next + 1
        try:
            sync_folder(self._folder)
        except OSError:  # a power cut might undo this name: the next try makes another
            self.close()
            raise

    def _abandon(self, size: int) -> None:
        """The callers get an error for these records: no reader may find them."""
        assert self._file is not None
        with suppress(OSError):
            os.ftruncate(self._file, size)
        self.close()


class SegmentReader:
    """Reads on from a position. Synchronous; what it reads was just written and is in memory."""

    def __init__(self, folder: Path, place: SegmentPlace) -> None:
        self._folder = folder
        self._place = place
        self._file: int | None = None

    def next(self, end: SegmentPlace) -> FoundRecord | None:
        """The next record before this end. Raises DamagedSegment, and continues after the damage."""
        while self._place < end:
            if self._file is None and not self._open(end):
                return None
            found = self._read(end)
            if found is not None:
                return found
            self._go_to(SegmentPlace(self._place.segment + 1))
        return None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self, end: SegmentPlace) -> FoundRecord | None:
        """None at the end of the segment."""
        assert self._file is not None
        start = self._place
        head = os.pread(self._file, HEAD.size, start.offset)
        if not head and start.segment < end.segment:
            return None
        length, checksum = HEAD.unpack(head) if len(head) == HEAD.size else (0, -1)
        record = os.pread(self._file, length, start.offset + HEAD.size)
        if not _is_whole(record, length, checksum):
            self._go_to(SegmentPlace(start.segment + 1))
            raise DamagedSegment(start, self._place)
        self._place = SegmentPlace(start.segment, start.offset + HEAD.size + length)
        return FoundRecord(start, self._place, record)

    def _open(self, end: SegmentPlace) -> bool:
        """Opens the segment of the position, or the next existing one."""
        for number in numbers(self._folder):
            if self._place.segment <= number <= end.segment:
                self._place = max(self._place, SegmentPlace(number))
                self._file = os.open(self._folder / NAME.format(number), os.O_RDONLY | os.O_CLOEXEC)
                return True
        return False

    def _go_to(self, place: SegmentPlace) -> None:
        self.close()
        self._place = place


def numbers(folder: Path) -> list[int]:
    """Numbers of existing segments, sorted."""
    return sorted(int(path.name, 16) for path in folder.glob("[0-9a-f]" * 16))


def prepare(folder: Path, reached: SegmentPlace) -> SegmentPlace:
    """Called before writing and reading: cuts off a torn end, and returns the place after the last record."""
    _make_durably(folder)
    remove_before(folder, reached)
    found = numbers(folder)
    if not found:
        return reached
    last = found[-1]
    start = max(reached, SegmentPlace(last))
    size = _cut_torn_end(folder / NAME.format(last), start.offset)
    return SegmentPlace(last, size)


def _make_durably(folder: Path) -> None:
    """If a power cut undid the folder, its segments would be lost too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        make_folder(folder)
        sync_folder(folder.parent)
        sync_folder(folder.parent.parent)


def _cut_torn_end(path: Path, start: int) -> int:
    """A crash left it, and it was never confirmed as stored. Returns the remaining size."""
    with path.open("rb+") as file:
        size = os.fstat(file.fileno()).st_size
        end = max(_whole_records(file.fileno(), start), default=start)
        if end < size:
            file.truncate(end)
            os.fsync(file.fileno())
    return min(end, size)


def _whole_records(file: int, offset: int) -> Iterator[int]:
    """Where each record ends, up to the first incomplete one."""
    while len(head := os.pread(file, HEAD.size, offset)) == HEAD.size:
        length, checksum = HEAD.unpack(head)
        record = os.pread(file, length, offset + HEAD.size)
        if not _is_whole(record, length, checksum):
            return
        offset += HEAD.size + length
        yield offset


def _is_whole(record: bytes, length: int, checksum: int) -> bool:
    """A file system may leave zeros where nothing was written: these are no empty record."""
    return len(record) == length > 0 and zlib.crc32(record) == checksum


def remove_before(folder: Path, place: SegmentPlace, *, with_own: bool = False) -> None:
    """Removes segments that end before the position; with `with_own` also its own, if nobody writes there."""
    for number in numbers(folder):
        if number < place.segment or (with_own and number == place.segment):
            (folder / NAME.format(number)).unlink(missing_ok=True)


def bytes_between(folder: Path, start: SegmentPlace, end: SegmentPlace) -> int:
    """About how many bytes there are to read."""
    sizes = {number: size_of(folder, number) for number in numbers(folder)}
    between = sum(size for number, size in sizes.items() if start.segment <= number <= end.segment)
    return max(0, between - (start.offset if start.segment in sizes else 0))


def size_of(folder: Path, number: int) -> int:
    path = folder / NAME.format(number)
    return path.stat().st_size if path.exists() else 0


def has_more(folder: Path, place: SegmentPlace) -> bool:
    """Whether any byte follows the position."""
    return bytes_between(folder, place, SegmentPlace(1 << 60)) > 0


def copy_out(folder: Path, start: SegmentPlace, end: SegmentPlace, target: Path) -> None:
    """Copies what is between two positions into another folder, as a segment. Durable on return."""
    _make_durably(target)
    content = (folder / NAME.format(start.segment)).read_bytes()
    piece = content[start.offset : end.offset if end.segment == start.segment else None]
    path = target / NAME.format(max(numbers(target), default=0) + 1)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(file, [piece])
        os.fsync(file)
    finally:
        os.close(file)
    sync_folder(target)


def _framed(record: Record) -> Iterator[bytes]:
    checksum = 0
    for part in record:
        checksum = zlib.crc32(part, checksum)
    yield HEAD.pack(sum(map(len, record)), checksum)
    yield from record


def _write_all(file: int, parts: Sequence[bytes]) -> None:
    written, left = os.writev(file, parts), sum(map(len, parts))
    if written < left:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(file, rest) :]
