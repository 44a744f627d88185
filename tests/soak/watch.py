"""What each process of a server uses, as the kernel counts it, and what lies in its folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from bench.consumption import family

MEGABYTE = 1024 * 1024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def processes(pid: int) -> Iterator[tuple[str, int]]:
    """The server, and its workers by number."""
    for number, each in enumerate(family(pid)):
        yield "server" if number == 0 else f"child {number}", each


def memory_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / MEGABYTE


def descriptors(pid: int) -> float:
    return float(len(list(Path(f"/proc/{pid}/fd").iterdir())))


def log_megabytes(folder: Path) -> float:
    """Of the database: what is written and not copied into it yet."""
    log = folder / "postroom.db-wal"
    return log.stat().st_size / MEGABYTE if log.exists() else 0.0
