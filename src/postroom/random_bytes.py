"""Bytes from the system's random source, fetched many at a time."""

import os
import secrets
from threading import Lock

FETCHED_BYTES = 4096


class RandomBytes:
    """Each byte is given once. A system call for each few bytes makes the loop wait for the other threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Fetch new bytes for the next call: a forked process must not give those of its parent."""
        self._lock = Lock()  # the parent's may be held
        self._fetched, self._given = b"", 0

    def take(self, count: int) -> bytes:
        with self._lock:
            begin, end = self._given, self._given + count
            if end > len(self._fetched):
                self._fetched, begin, end = secrets.token_bytes(max(count, FETCHED_BYTES)), 0, count
            self._given = end
            return self._fetched[begin:end]


SHARED = RandomBytes()
os.register_at_fork(after_in_child=SHARED.forget)
