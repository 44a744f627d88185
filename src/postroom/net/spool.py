"""The content of an email while it arrives: in memory if small, in an unnamed temporary file if large."""

import io
import mmap
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from msgspec import Struct

from postroom import log

_WRITE_BUFFER_BYTES = 256 * 1024


class Readable(Protocol):
    """The part of a binary file that a reader of mail needs."""

    def read(self, size: int = -1, /) -> bytes: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


class SpooledContent(Protocol):
    """The bytes of a complete mail."""

    @property
    def size_bytes(self) -> int: ...
    def read(self) -> bytes: ...
    def open(self) -> Readable: ...
    def close(self) -> None: ...


class InMemory(Struct, frozen=True):
    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data

    def open(self) -> Readable:
        return io.BytesIO(self.data)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class InFile(Struct, frozen=True):
    file: IO[bytes]
    size_bytes: int

    def read(self) -> bytes:
        with self.open() as reader:
            return reader.read()

    def open(self) -> Readable:
        # Each map has its own position, so that readers in several threads do not disturb one another.
        return mmap.mmap(self.file.fileno(), self.size_bytes, access=mmap.ACCESS_READ)

    def close(self) -> None:
        self.file.close()


class Spool:
    """Collects one email. The file has no name, so a crash leaves nothing behind."""

    __slots__ = ("_file", "_folder", "_memory", "_memory_limit", "_size")

    def __init__(self, folder: Path, memory_limit: int) -> None:
        self._folder = folder
        self._memory_limit = memory_limit
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        """Raises OSError if the disk is full."""
        self._size += len(data)
        if self._file is not None:
            self._file.write(data)
            return
        self._memory += data
        if self._size > self._memory_limit:
            self._move_to_file()

    def finish(self) -> SpooledContent:
        """Return the complete email; nothing may be written after this. Raises OSError like `write`."""
        if self._file is None:
            return InMemory(bytes(self._memory))
        self._file.flush()
        return InFile(self._file, self._size)

    def discard(self) -> None:
        self._memory = bytearray()
        if self._file is not None:
            # Closing writes what is still buffered, which a full disk refuses; the file is closed anyway.
            with suppress(OSError):
                self._file.close()

    def _move_to_file(self) -> None:
        self._file = tempfile.TemporaryFile(  # noqa: SIM115 - lives until the email is taken over
            dir=self._folder, buffering=_WRITE_BUFFER_BYTES
        )
        self._file.write(self._memory)
        self._memory = bytearray()


class IncomingMail:
    """The email that a connection is receiving, if any. One that cannot be spooled is dropped."""

    def __init__(self, folder: Path, memory_limit: int) -> None:
        self._folder = folder
        self._memory_limit = memory_limit
        self._spool: Spool | None = None

    def begin(self) -> None:
        self.drop()
        self._spool = Spool(self._folder, self._memory_limit)

    def write(self, data: bytes) -> None:
        if self._spool is None:
            return
        try:
            self._spool.write(data)
        except OSError:
            log.get().exception("an email could not be spooled")
            self.drop()

    def drop(self) -> None:
        if self._spool is not None:
            self._spool.discard()
            self._spool = None

    def take(self) -> Spool | None:
        """Return None if it was dropped."""
        spool, self._spool = self._spool, None
        return spool
