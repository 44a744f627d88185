"""Notes every write of this process below some folders, by Python's audit events (PEP 578).

Complete in itself: its source is also the `sitecustomize` of every Python process that a test starts.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# How many of its first arguments are paths.
CHANGES = {
    "os.chmod": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.utime": 1,
    "sqlite3.connect": 1,
}


def watch(folders: Sequence[str], report: str) -> None:
    """Each path is written to the report as a line."""

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and arguments[2] & WRITES
        for path in arguments[: 1 if is_write else CHANGES.get(event, 0)]:
            if not isinstance(path, str | bytes | os.PathLike):
                continue  # a descriptor: its file was noted when it was opened
            place = os.path.abspath(os.fsdecode(path))
            if any(place == folder or place.startswith(f"{folder}/") for folder in folders):
                with open(report, "a") as lines:
                    lines.write(f"{place}\n")

    sys.addaudithook(note)
