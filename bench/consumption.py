"""What processes use, as the kernel counts it: processor time, and bytes handed to the disk."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
BUSY_SHARE = 0.15
SETTLE_SECONDS = 0.6
SETTLE_AT_MOST_SECONDS = 60
IDLE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Use:
    cpu_seconds: float
    written_bytes: int

    def __sub__(self, earlier: "Use") -> "Use":
        return Use(self.cpu_seconds - earlier.cpu_seconds, self.written_bytes - earlier.written_bytes)


def of_family(*pids: int) -> Use:
    """Processes, all that they started, and those of them that have ended and were collected."""
    uses = [_of(each) for pid in pids for each in family(pid)]
    return Use(sum(use.cpu_seconds for use in uses), sum(use.written_bytes for use in uses))


def settle(*pids: int) -> None:
    """Waits until what was taken is copied, indexed, forwarded and on the disk: then it is another's turn."""
    end = time.monotonic() + SETTLE_AT_MOST_SECONDS
    used, before = 1.0, of_family(*pids).cpu_seconds
    while used > IDLE_SHARE * SETTLE_SECONDS and time.monotonic() < end:
        time.sleep(SETTLE_SECONDS)
        now = of_family(*pids).cpu_seconds
        used, before = now - before, now
    os.sync()


def family(pid: int) -> Iterable[int]:
    yield pid
    for task in _names(Path(f"/proc/{pid}/task")):
        for child in _text(Path(f"/proc/{pid}/task/{task}/children")).split():
            yield from family(int(child))


def _of(pid: int) -> Use:
    # The name may hold blanks and parentheses; what follows is by number (proc_pid_stat, from field 3).
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    ticks = sum(int(fields[number - 3]) for number in (14, 15, 16, 17)) if fields else 0
    lines = dict(line.split(": ") for line in _text(Path(f"/proc/{pid}/io")).splitlines())
    return Use(ticks / TICKS, int(lines.get("write_bytes", 0)))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


class Neighbours:
    """What others took of the machine's processors while something was measured."""

    def __init__(self) -> None:
        self._before = _machine()
        self._own_before = _own()
        self._started = time.perf_counter()

    def share(self) -> float:
        """Of all processors, from 0 to 1; ours are this process and all that it started."""
        busy = _machine() - self._before - (_own() - self._own_before)
        seconds = (time.perf_counter() - self._started) * (os.cpu_count() or 1)
        return max(0.0, busy / seconds) if seconds else 0.0


def _machine() -> float:
    """Seconds in which a processor was neither idle nor waiting for a disk."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / TICKS


def _own() -> float:
    return of_family(os.getpid()).cpu_seconds
