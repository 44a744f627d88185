"""The data folder: readable by its owner only, and locked by one server at a time."""

import fcntl
import os
import time
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from postroom.storage.database import StorageError

LOCK_NAME = "postroom.lock"
DATABASE_NAME = "postroom.db"
PAUSES, PAUSE_SECONDS = 200, 0.01  # how often to try while the process named in the lock is gone


class FolderLock:
    """Held for the life of the process; the kernel releases it even after kill -9."""

    def __init__(self, folder: Path, pause: Callable[[float], None] = time.sleep) -> None:
        make_folder(folder)
        self._descriptor = _open_lock(folder / LOCK_NAME)
        pauses = PAUSES
        while not self._take():
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            pauses -= 1
            if not pauses or _runs(holder):
                os.close(self._descriptor)
                raise StorageError(
                    f"Another Postroom (process {holder or 'unknown'}) already runs on the data folder"
                    f" {folder}. Stop it, or set POSTROOM_DATA_DIR to another folder."
                )
            pause(PAUSE_SECONDS)
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def _take(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        os.close(self._descriptor)


def _runs(holder: str) -> bool:
    """Return whether the holder runs.

    A child that a killed server was starting keeps the lock a moment longer.
    """
    if not holder.isdecimal():
        return False
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"POSTROOM_DATA_DIR: {path} cannot be opened: {error.strerror}.") from error


def make_folder(folder: Path) -> None:
    try:
        if not folder.is_dir():
            new = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
            for each in reversed(new):
                each.mkdir(mode=0o700, exist_ok=True)
                sync_folder(each.parent)
    except OSError as error:
        raise StorageError(f"POSTROOM_DATA_DIR: {folder} cannot be created: {error.strerror}.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"POSTROOM_DATA_DIR: {folder} cannot be written.")


def sync_folder(folder: Path) -> None:
    """Sync a folder: otherwise a power loss may undo new, renamed and removed names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# What only a server that has run leaves next to its database.
TRACES = ("blobs/??/*", "journal/*/*", "search.db", "outcomes/*", "outcomes.journal", f"{DATABASE_NAME}-wal")


def require_no_lost_database(folder: Path) -> None:
    """Raises if data of a server is there without its database: it was lost.

    A start with a new database would make a new first account, and remove large emails as orphans.
    """
    database = folder / DATABASE_NAME
    if database.is_file() and database.stat().st_size:
        return
    if any(path.stat().st_size for trace in TRACES for path in folder.glob(trace)):
        state = "is empty" if database.exists() else "is missing"
        raise StorageError(
            f"POSTROOM_DATA_DIR: {database} {state}, but the folder has data of a server. Put the"
            " database back (postroom restore, into an empty folder), or start on another folder; nothing was"
            " changed."
        )
