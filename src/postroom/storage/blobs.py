"""Bytes too large for a row: written, fsynced, renamed, fsynced again. No name is ever used twice."""

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from postroom.storage.folder import make_folder

# What has no room for this much has none for a large mail either.
PROBE_BYTES = 256 * 1024


class Blobs(Protocol):
    def put(self, content: bytes) -> str:
        """Durable on return. The name holds the hash of the content, and is new even for content seen before:
        whoever removes a blob need not fear that somebody has just begun to use it."""
        ...

    def get(self, name: str) -> bytes: ...
    def remove(self, name: str) -> None: ...
    def names(self, older_than_seconds: float) -> Iterable[str]: ...
    def check(self) -> None:
        """Raises OSError when nothing can be written."""
        ...


class LocalBlobs:
    """Synchronous; call it in a thread where it must not hold up the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_folder(folder)

    def put(self, content: bytes) -> str:
        name = f"{hashlib.sha256(content).hexdigest()}-{secrets.token_hex(8)}"
        path = self._path(name)
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._sync_folder(self._folder)
        self._write_durably(path, content)
        self._sync_folder(path.parent)
        return name

    def get(self, name: str) -> bytes:
        return self._path(name).read_bytes()

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def names(self, older_than_seconds: float) -> Iterator[str]:
        """Of what was put some while ago, and of parts that a dead process left."""
        newest = time.time() - older_than_seconds
        return (path.name for path in self._folder.glob("??/*") if path.stat().st_mtime <= newest)

    def check(self) -> None:
        probe = self._folder / f"{secrets.token_hex(8)}.probe"
        try:
            self._write_durably(probe, bytes(PROBE_BYTES))
        finally:
            probe.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _write_durably(self, path: Path, content: bytes) -> None:
        part = path.with_name(f"{path.name}.part")
        try:
            with open(part, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise

    def _sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
