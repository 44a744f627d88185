"""Where a run keeps its files: in memory where there is room, for to wait for a disk proves nothing more."""

import os
import shutil
from pathlib import Path

SETTING = "POSTROOM_TEST_FOLDER"  # another folder, as one on a disk
MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30


def choose(memory: Path = MEMORY) -> str | None:
    """None is the folder that the machine has for such files."""
    if chosen := os.environ.get(SETTING):
        return chosen
    return str(memory) if is_usable(memory) else None


def is_usable(folder: Path) -> bool:
    """Tests write programs and run them, so that a folder without is none for them."""
    return (
        os.access(folder, os.W_OK | os.X_OK)
        and not os.statvfs(folder).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(folder).free >= ROOM_BYTES
    )
