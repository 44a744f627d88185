"""One server a folder: a second one is told whose it is, and who follows a killed one gets it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from postroom.storage.data_folder import LOCK_NAME, PAUSES, FolderLock
from postroom.storage.database import StorageError


def held_in_the_name_of(folder: Path, pid: int) -> int:
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, f"{pid}\n".encode())
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def test_a_second_server_is_refused_at_once_and_told_by_whom(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    pauses: list[float] = []
    with pytest.raises(StorageError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path, pauses.append)
    assert pauses == []
    first.release()
    FolderLock(tmp_path).release()


def test_a_child_of_a_killed_server_that_still_has_the_lock_is_waited_for(tmp_path: Path) -> None:
    descriptor = held_in_the_name_of(tmp_path, ended_process())
    FolderLock(tmp_path, lambda _: os.close(descriptor)).release()


def test_nobody_waits_for_ever_for_a_lock_of_one_that_is_gone(tmp_path: Path) -> None:
    descriptor = held_in_the_name_of(tmp_path, ended_process())
    pauses: list[float] = []
    with pytest.raises(StorageError, match="already runs"):
        FolderLock(tmp_path, pauses.append)
    assert len(pauses) == PAUSES - 1
    os.close(descriptor)
