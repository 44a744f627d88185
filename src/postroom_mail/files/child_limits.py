"""Resource limits that a child sets for itself before it reads anything from outside."""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

LOW_PRIORITY = 10
MAX_OPEN_FILES = 64
MOST_FILES = 65_536
PR_SET_PDEATHSIG = 1


def confine(memory_bytes: int) -> None:
    os.nice(LOW_PRIORITY)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)


def close_other_files(*kept: int) -> None:
    """Close all other files: the parent may pass on copies of its output, and files that it inherited."""
    for number in _open_files() - {0, 1, 2, *kept}:
        with suppress(OSError):  # the listing itself, which is closed by now
            os.close(number)


def _open_files() -> set[int]:
    """Return the open files, from a listing, since the limit may be a billion; else all possible numbers."""
    try:
        return set(map(int, os.listdir("/dev/fd")))
    except OSError:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return set(range(MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)))


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


def allow_processor_seconds(seconds: int) -> None:
    """Allow that much more from now.

    The system counts from the start of the process, which runs many jobs.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def die_with_parent() -> None:
    """Die when the parent ends in any way, on Linux. Elsewhere the end of input does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def peak_memory_bytes() -> int:
    """Return the peak of this process alone, if /proc has it: on Linux ru_maxrss begins with the parent's."""
    with suppress(OSError, StopIteration), open("/proc/self/status", "rb") as facts:
        return next(int(fact.split()[1]) * 1024 for fact in facts if fact.startswith(b"VmHWM:"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
