"""The data folder: made private, and held by one server at a time."""

import fcntl
import os
from pathlib import Path

from postroom.storage.database import StorageError

LOCK_NAME = "postroom.lock"


class FolderLock:
    """Kept for the life of the process; the kernel lets go of it even after kill -9."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._descriptor = _open_lock(folder / LOCK_NAME)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StorageError(
                f"Another Postroom (process {holder}) already runs on the data folder {folder}. "
                "Stop it, or set POSTROOM_DATA_DIR to another folder."
            ) from None
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"POSTROOM_DATA_DIR: {path} cannot be opened: {error.strerror}.") from error


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"POSTROOM_DATA_DIR: {folder} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"POSTROOM_DATA_DIR: {folder} cannot be written.")
