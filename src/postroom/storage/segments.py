"""Segments: a folder of files of records, appended and synced together.

A process that begins to write starts a new segment, so that no record ever follows a torn one. The name of a
segment is its number and the marker of its records (see `records`): no byte inside the file is needed to read
the others. A name without a marker is of the first format.
"""

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from postroom import log
from postroom.storage.data_folder import make_folder, sync_folder
from postroom.storage.records import (
    HEAD,
    MARKER_BYTES,
    FirstFraming,
    Framing,
    MarkedFraming,
    Record,
    framed,
    pieces,
    read_at,
)

SEGMENT_BYTES = 16 * 1024 * 1024
PARTS_OF_A_WRITE = 1_000  # the kernel takes 1,024
NAME = "{:016x}"
NAME_PATTERN = r"[0-9a-f]{16}(?:-[0-9a-f]{32})?"

_setting_aside = threading.Lock()
_is_name = re.compile(NAME_PATTERN).fullmatch


class SegmentPosition(NamedTuple):
    """A position between two records."""

    segment: int = 0
    offset: int = 0


class FoundRecord(NamedTuple):
    """A record, its position and that of the next one."""

    start: SegmentPosition
    end: SegmentPosition
    record: bytes


class DamagedSegment(Exception):
    """There is no whole record between these positions."""

    def __init__(self, start: SegmentPosition, end: SegmentPosition) -> None:
        super().__init__(f"segment {NAME.format(start.segment)} is damaged at {start.offset}")
        self.start, self.end = start, end


class SegmentWriter:
    """Appends records. Synchronous, for one thread."""

    def __init__(self, folder: Path, next_segment: int) -> None:
        self._folder = folder
        self._next = next_segment
        self._file: int | None = None
        self._marker = b""
        self._count = 0  # of records in this segment
        self.end = SegmentPosition(next_segment - 1)

    def append(self, records: Sequence[Record]) -> list[SegmentPosition]:
        """Append the records durably. Return the position after each. After an OSError none is stored."""
        if self._file is None or self.end.offset >= SEGMENT_BYTES:
            self._begin_segment()
        assert self._file is not None
        places, marker = self.end, self._marker
        parts = list(
            chain.from_iterable(
                framed(record, marker, number) for number, record in enumerate(records, self._count)
            )
        )
        try:
            for start in range(0, len(parts), PARTS_OF_A_WRITE):
                _write_all(self._file, parts[start : start + PARTS_OF_A_WRITE])
            os.fdatasync(self._file)
        except OSError:
            self._abandon(places.offset)
            raise
        ends = []
        for record in records:
            places = SegmentPosition(places.segment, places.offset + HEAD.size + sum(map(len, record)))
            ends.append(places)
        self.end, self._count = places, self._count + len(records)
        return ends

    def close(self) -> None:
        """Close the segment. The next record starts a new one."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin_segment(self) -> None:
        self.close()
        self._marker, self._count = secrets.token_bytes(MARKER_BYTES), 0
        path = self._folder / _name(self._next, self._marker)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.end, self._next = SegmentPosition(self._next), self._next + 1
        try:
            sync_folder(self._folder)
        except OSError:  # a power cut might undo this name: the next try makes another
            self.close()
            raise

    def _abandon(self, size: int) -> None:
        """Remove records for which the callers get an error: no reader may find them."""
        assert self._file is not None
        with suppress(OSError):
            os.ftruncate(self._file, size)
        self.close()


class SegmentReader:
    """Reads on from a position. Synchronous; what it reads was just written and is in memory."""

    def __init__(self, folder: Path, place: SegmentPosition) -> None:
        self._folder = folder
        self._place = place
        self._file: int | None = None
        self._framing: Framing = FirstFraming()

    def next(self, end: SegmentPosition) -> FoundRecord | None:
        """Return the next record before this end.

        Raise DamagedSegment; the next call continues after the damage.
        """
        while self._place < end:
            if self._file is None and not self._open(end):
                return None
            found = self._read(end)
            if found is not None:
                return found
            self._go_to(SegmentPosition(self._place.segment + 1))
        return None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self, end: SegmentPosition) -> FoundRecord | None:
        """Return None at the end of the segment."""
        assert self._file is not None
        start, is_last = self._place, self._place.segment == end.segment
        limit = os.fstat(self._file).st_size
        limit = min(limit, end.offset) if is_last else limit
        if start.offset >= limit and not is_last:
            return None
        piece = self._framing.step(self._file, start.offset, limit)
        self._place = SegmentPosition(start.segment, piece.end)
        if piece.record is not None:
            return FoundRecord(start, self._place, piece.record)
        if piece.end >= limit:
            self._go_to(end if is_last else SegmentPosition(start.segment + 1))
        raise DamagedSegment(start, self._place)

    def _open(self, end: SegmentPosition) -> bool:
        """Opens the segment of the position, or the next existing one."""
        for number, path in _paths(self._folder).items():
            if self._place.segment <= number <= end.segment:
                self._place = max(self._place, SegmentPosition(number))
                self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._framing = _framing(path)
                for _ in pieces(self._framing, self._file, 0, self._place.offset):
                    pass  # it must know the records before the place: a copy of one may follow
                return True
        return False

    def _go_to(self, place: SegmentPosition) -> None:
        self.close()
        self._place = place


def numbers(folder: Path) -> list[int]:
    """Return the numbers of existing segments, sorted."""
    return list(_paths(folder))


def path_of(folder: Path, number: int) -> Path:
    """Raises FileNotFoundError."""
    try:
        return _paths(folder)[number]
    except KeyError:
        raise FileNotFoundError(f"{folder} has no segment {NAME.format(number)}") from None


def _paths(folder: Path) -> dict[int, Path]:
    """Return the segments by number, sorted."""
    found = (path for path in folder.glob("*") if _is_name(path.name))
    return {int(path.name[:16], 16): path for path in sorted(found)}


def _name(number: int, marker: bytes) -> str:
    return f"{NAME.format(number)}-{marker.hex()}"


def _framing(path: Path) -> Framing:
    marker = path.name[17:]
    return MarkedFraming(bytes.fromhex(marker)) if marker else FirstFraming()


def prepare(folder: Path, reached: SegmentPosition) -> SegmentPosition:
    """Called before writing and reading: cuts off a torn end, and returns the place after the last record.

    Damage stays where it is, for the reader to report.
    """
    _make_durably(folder)
    remove_before(folder, reached)
    found = _paths(folder)
    if not found:
        return reached
    last = max(found)
    start = max(reached, SegmentPosition(last))
    return SegmentPosition(last, _cut_torn_end(found[last], start.offset))


def _make_durably(folder: Path) -> None:
    """Create the folder durably: if a power cut undid it, its segments would be lost too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        make_folder(folder)
        sync_folder(folder.parent)
        sync_folder(folder.parent.parent)


def _cut_torn_end(path: Path, start: int) -> int:
    """Cuts a beginning of a record that nobody confirmed, left by a crash. Returns the remaining size."""
    framing = _framing(path)
    with path.open("rb+") as file:
        size = os.fstat(file.fileno()).st_size
        last = None
        for piece in pieces(framing, file.fileno(), 0, size):
            last = piece
        if last is None or last.record is not None or last.start < start:
            return size
        if not framing.is_torn(read_at(file.fileno(), size - last.start, last.start)):
            return size
        file.truncate(last.start)
        os.fsync(file.fileno())
        log.get().info("a torn end of a journal was cut off", segment=path.name[:16], bytes=size - last.start)
        return last.start


def remove_before(folder: Path, place: SegmentPosition, *, with_own: bool = False) -> None:
    """Removes segments that end before the position; with `with_own` also its own, if nobody writes there."""
    for number, path in _paths(folder).items():
        if number < place.segment or (with_own and number == place.segment):
            path.unlink(missing_ok=True)


def bytes_between(folder: Path, start: SegmentPosition, end: SegmentPosition) -> int:
    """Return about how many bytes there are to read."""
    sizes = {number: _size(path) for number, path in _paths(folder).items()}
    between = sum(size for number, size in sizes.items() if start.segment <= number <= end.segment)
    return max(0, between - (start.offset if start.segment in sizes else 0))


def size_of(folder: Path, number: int) -> int:
    path = _paths(folder).get(number)
    return 0 if path is None else _size(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deposited and removed meanwhile
        return 0


def has_more(folder: Path, place: SegmentPosition) -> bool:
    """Return whether any byte follows the position."""
    return bytes_between(folder, place, SegmentPosition(1 << 60)) > 0


def set_aside(folder: Path, start: SegmentPosition, target: Path) -> None:
    """Copies the record at a position into another folder, as a segment. Durable on return.

    A second call changes nothing: the marker of the copy shows where it is from.
    """
    path = path_of(folder, start.segment)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        record = _framing(path).step(file, start.offset, os.fstat(file).st_size).record
    finally:
        os.close(file)
    if record is None:
        raise DamagedSegment(start, start)
    origin = hashlib.blake2b(f"{folder.name}/{path.name}/{start.offset}/".encode(), digest_size=MARKER_BYTES)
    origin.update(record)
    marker = origin.digest()
    with _setting_aside:
        _make_durably(target)
        there = _paths(target)
        if not any(each.name.endswith(marker.hex()) for each in there.values()):
            name = _name(max(there, default=0) + 1, marker)
            _write_file(target / name, b"".join(framed([record], marker, 0)))


def keep_damage(folder: Path, start: SegmentPosition, end: SegmentPosition, target: Path) -> Path:
    """Copies the bytes between two positions into a file of another folder. Durable on return."""
    path = path_of(folder, start.segment)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = end.offset if end.segment == start.segment else os.fstat(file).st_size
        content = read_at(file, until - start.offset, start.offset)
    finally:
        os.close(file)
    _make_durably(target)
    kept = target / f"{folder.name}.{NAME.format(start.segment)}.{start.offset}"
    _write_file(kept, content)
    return kept


def _write_file(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_all(file, [content])
        os.fsync(file)
    finally:
        os.close(file)
    part.replace(path)
    sync_folder(path.parent)


def _write_all(file: int, parts: Sequence[bytes]) -> None:
    written, left = os.writev(file, parts), sum(map(len, parts))
    if written < left:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(file, rest) :]
