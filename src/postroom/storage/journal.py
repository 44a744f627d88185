"""A small journal of records that survives a stop or a crash: each is appended and synced alone."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from postroom import log
from postroom.storage import segments
from postroom.storage.data_folder import make_folder, sync_folder
from postroom.storage.records import FirstFraming, pieces
from postroom.storage.segments import DamagedSegment, SegmentPosition, SegmentReader, SegmentWriter

DAMAGED = "damaged"


class Journal:
    """For what is written rarely. A reader may find a record twice, and must tolerate that.

    The records are in a folder of segments; earlier versions had one file, which is still read.
    """

    def __init__(self, path: Path) -> None:
        self._file = path
        self._folder = path.with_suffix("")
        self._lock = threading.Lock()
        self._writer: SegmentWriter | None = None

    def append(self, record: bytes) -> None:
        """Append a record, durable on return."""
        with self._lock:
            if self._writer is None:
                self._writer = self._new_writer()
            self._writer.append([[record]])

    def read(self) -> list[bytes]:
        """Return every whole record. What is damaged is logged, and kept."""
        with self._lock:  # a record that is being written would look torn
            return [*self._read_file(), *self._read_segments()]

    def rewrite(self, records: Sequence[bytes]) -> None:
        """Replaces all records."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            behind = SegmentPosition(max(segments.numbers(self._folder), default=0) + 1)
            if records:
                self._writer = self._new_writer()
                self._writer.append([[record] for record in records])
            segments.remove_before(self._folder, behind)
            self._file.unlink(missing_ok=True)

    def _new_writer(self) -> SegmentWriter:
        if not self._folder.is_dir():
            make_folder(self._folder)
            sync_folder(self._folder.parent)
        return SegmentWriter(self._folder, max(segments.numbers(self._folder), default=0) + 1)

    def _read_segments(self) -> Iterator[bytes]:
        if not self._folder.is_dir():
            return
        end = segments.prepare(self._folder, SegmentPosition())  # the torn end that a crash left is no damage
        reader = SegmentReader(self._folder, SegmentPosition())
        while True:
            try:
                found = reader.next(end)
            except DamagedSegment as error:
                self._keep(error)
                continue
            if found is None:
                reader.close()
                return
            yield found.record

    def _keep(self, damage: DamagedSegment) -> None:
        try:
            kept = segments.keep_damage(
                self._folder,
                damage.start,
                damage.end,
                self._folder.with_name(f"{self._folder.name}.{DAMAGED}"),
            )
        except OSError as error:
            log.get().error("a journal is damaged", reason=f"{damage}; its bytes cannot be kept: {error}")
        else:
            log.get().error("a journal is damaged", reason=str(damage), kept=str(kept))

    def _read_file(self) -> Iterator[bytes]:
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for piece in pieces(FirstFraming(), file.fileno(), 0, size):
                if piece.record is None:
                    log.get().error("a journal is damaged", file=self._file.name, at=piece.start)
                else:
                    yield piece.record
