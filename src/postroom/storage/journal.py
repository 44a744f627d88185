"""A small file of records that survives a stop or a crash: each is appended and synced by itself."""

import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from postroom import log
from postroom.storage.data_folder import sync_folder

HEAD_BYTES = 8  # the length of a record and its checksum


class Journal:
    """For what is written rarely. A reader may find a record twice, and must tolerate that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def append(self, record: bytes) -> None:
        """Durable on return."""
        with self._lock:
            is_new = not self._path.exists()
            _write(self._path, os.O_APPEND, _framed(record))
            if is_new:
                sync_folder(self._path.parent)

    def read(self) -> list[bytes]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        return list(self._split(content))

    def rewrite(self, records: Sequence[bytes]) -> None:
        """Replaces all records."""
        with self._lock:
            if records:
                beside = self._path.with_suffix(".new")
                _write(beside, os.O_TRUNC, b"".join(map(_framed, records)))
                beside.replace(self._path)
                sync_folder(self._path.parent)
            else:
                self._path.unlink(missing_ok=True)

    def _split(self, content: bytes) -> Iterator[bytes]:
        """Stops at an incomplete record, left by a crash: nothing behind it can be read."""
        at = 0
        while at < len(content):
            length = int.from_bytes(content[at : at + 4], "big")
            record = content[at + HEAD_BYTES : at + HEAD_BYTES + length]
            if content[at : at + HEAD_BYTES + length] != _framed(record):
                log.get().error("a journal is damaged", file=self._path.name, at=at, bytes=len(content))
                return
            yield record
            at += HEAD_BYTES + length


def _framed(record: bytes) -> bytes:
    return len(record).to_bytes(4, "big") + zlib.crc32(record).to_bytes(4, "big") + record


def _write(path: Path, how: int, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
