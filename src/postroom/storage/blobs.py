"""Bytes too large for a row: written, fsynced, renamed, fsynced again. No name is ever used twice.

A name begins with the hash of the bytes; reading gives exactly these bytes, or DamagedBlob.
"""

import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

from postroom import log
from postroom.errors import InternalError, Unavailable
from postroom.processes import process_metrics
from postroom.storage.data_folder import make_folder, sync_folder

# A disk without space for this much has none for a large email either.
PROBE_BYTES = 256 * 1024
STREAM_BYTES = 1024 * 1024
UNFINISHED = ".part"
STORE_ID = "store-id"
HASH_CHARACTERS = 64
_named_by_hash = re.compile(r"[0-9a-f]{64}-[0-9a-f]{16}")


class DamagedBlob(InternalError):
    """The stored bytes do not match their hash, or the disk cannot read them."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "This email is damaged in the server's store. Its operator can see which: postroom verify"
        )
        self.name = name


class BlobPart(Struct, frozen=True):
    """A file inside a large email, stored apart for a while: no row names it, so it is swept as an orphan."""

    name: str
    filename: str
    content_type: str


class Blobs(Protocol):
    @property
    def is_shared(self) -> bool:
        """Return whether every node sees the same blobs, wherever it runs."""
        ...

    def put(self, content: bytes) -> str:
        """Store the content durably. The name holds its hash, and is new even for content seen before.

        So a blob can be removed: nothing else can have begun to use it meanwhile.
        """
        ...

    def put_as(self, name: str, content: bytes) -> None:
        """Store content from another store, which keeps its name."""
        ...

    def get(self, name: str) -> bytes:
        """Raises DamagedBlob, or FileNotFoundError."""
        ...

    def stream(self, name: str) -> Iterator[bytes]:
        """Yields chunks. Any damage is raised by this call, before the first chunk."""
        ...

    def get_unchecked(self, name: str) -> bytes:
        """Returns whatever is there, to save what is left of a damaged mail."""
        ...

    def remove(self, name: str) -> None: ...
    def names(self, older_than_seconds: float) -> Iterable[str]: ...
    def check(self) -> None:
        """Raises OSError or Unavailable if nothing can be written."""
        ...

    def store_id(self) -> str:
        """Return an id that is the same for all nodes that see the same blobs."""
        ...

    def link(self, part: BlobPart, make: Callable[[], bytes], seconds: float) -> str | None:
        """Return a temporary link to the part in the store, made if missing.

        None if the store has no links.
        """
        ...


class BlobsByHash:
    """Common to all stores: names that hold the hash, and bytes that are checked against it."""

    def put(self: Blobs, content: bytes) -> str:
        name = f"{hashlib.sha256(content).hexdigest()}-{secrets.token_hex(8)}"
        self.put_as(name, content)
        return name

    def get(self: Blobs, name: str) -> bytes:
        content = self.get_unchecked(name)
        require_sound(name, content)
        return content


class LocalBlobs(BlobsByHash):
    """Synchronous; call it in a thread if it must not block the event loop."""

    is_shared = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_folder(folder)

    def put_as(self, name: str, content: bytes) -> None:
        path = self._path(name)
        with _unwritable_is_unavailable():
            if not path.parent.exists():
                path.parent.mkdir(mode=0o700, exist_ok=True)
                sync_folder(self._folder)
            self._write_durably(path, content)
            sync_folder(path.parent)

    def get_unchecked(self, name: str) -> bytes:
        with _unreadable_is_damaged(name):
            return self._path(name).read_bytes()

    def stream(self, name: str) -> Iterator[bytes]:
        """Read twice, since bytes already sent cannot be recalled; the second time they are in memory."""
        with _unreadable_is_damaged(name), ExitStack() as stack:
            chunks = checked_stream(name, stack.enter_context(self._path(name).open("rb")))
            stack.pop_all()
            return chunks

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def names(self, older_than_seconds: float) -> Iterator[str]:
        """Names of blobs of a minimum age, and of parts that a dead process left."""
        newest = time.time() - older_than_seconds
        return (path.name for path in self._folder.glob("??/*") if _is_written_before(path, newest))

    def check(self) -> None:
        probe = self._folder / f"{secrets.token_hex(8)}.probe"
        try:
            self._write_durably(probe, bytes(PROBE_BYTES))
        finally:
            probe.unlink(missing_ok=True)

    def store_id(self) -> str:
        """Return the id of the folder, made on first use: several machines may share the folder."""
        path = self._folder / STORE_ID
        if not path.exists():
            own = self._folder / f"{STORE_ID}.{secrets.token_hex(8)}"
            self._write_durably(own, secrets.token_hex(8).encode())
            with suppress(FileExistsError):
                path.hardlink_to(own)  # the first wins
            own.unlink()
            sync_folder(self._folder)
        return path.read_text()

    def link(self, part: BlobPart, make: Callable[[], bytes], seconds: float) -> str | None:
        return None

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _write_durably(self, path: Path, content: bytes) -> None:
        part = path.with_name(f"{path.name}{UNFINISHED}")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise


def _is_written_before(path: Path, moment: float) -> bool:
    """Return False if it was removed or renamed since its folder was listed."""
    try:
        return path.stat().st_mtime <= moment
    except FileNotFoundError:
        return False


def is_sound(name: str, content: bytes) -> bool:
    """Names without a hash (parts, which can be made again from their mail) are not checked."""
    return not _named_by_hash.fullmatch(name) or name.startswith(hashlib.sha256(content).hexdigest())


def require_sound(name: str, content: bytes) -> None:
    if not is_sound(name, content):
        raise report_damage(name)


def checked_stream(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of an open file that was checked, checking it again while reading."""
    for _ in _checked_chunks(name, file):
        pass
    file.seek(0)
    return _closing(_checked_chunks(name, file), file)


def _checked_chunks(name: str, file: BinaryIO) -> Iterator[bytes]:
    hashed = hashlib.sha256()
    while chunk := file.read(STREAM_BYTES):
        hashed.update(chunk)
        yield chunk
    if _named_by_hash.fullmatch(name) and hashed.hexdigest() != name[:HASH_CHARACTERS]:
        raise report_damage(name)


def _closing(chunks: Iterator[bytes], file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from chunks


def report_damage(name: str) -> DamagedBlob:
    """Logs and counts the damage, for which there is an alert, and returns the error for the reader."""
    process_metrics.DAMAGED_READS.increment(process_metrics.BLOB)
    log.get().error("a large email is damaged", blob=name)
    return DamagedBlob(name)


@contextmanager
def _unwritable_is_unavailable() -> Iterator[None]:
    """Raise a temporary error if the disk is full, read-only or broken, or if descriptors ran out."""
    try:
        yield
    except OSError as error:
        raise Unavailable("Nothing can be stored now. Try again.", retry_after=5) from error


@contextmanager
def _unreadable_is_damaged(name: str) -> Iterator[None]:
    """Report an I/O error as damage; missing files and temporary errors are not."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.EIO:
            raise report_damage(name) from error
        raise Unavailable("This cannot be read now. Try again.", retry_after=5) from error
