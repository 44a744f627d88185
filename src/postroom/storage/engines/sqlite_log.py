"""SQLite's log: copied into the database beside the writer, which never copies itself.

A copy takes no lock that a commit needs, so both go on side by side. But the log begins anew only when all of
it is copied, and a writer that is never idle is always some pages ahead: the log would grow for ever. So once
it is long, the writer stands between two transactions, for the few pages that came during the last copy.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from postroom import log

# A large copy keeps the disk busy, and a commit waits for the disk: so the more is written, the more often.
STEP_PAGES = 1_000
SHORTEST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.25
# From this length on the log is to begin anew, once little is left to copy; beyond the last in any case.
LONG_LOG_PAGES = 8_000
LITTLE_PAGES = 100
LONGEST_LOG_PAGES = 32_000
COPIES_IN_A_ROW = 6
# The planner's statistics, from a sample of each index: so that they are made in milliseconds.
ANALYZE_SECONDS = 600.0
ANALYZED_ROWS = 400


class Turns:
    """Of the writer's transactions, and of what is done between two of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_writing = False
        self._is_asked = False

    def begin(self) -> None:
        """Before a transaction: waits for whoever has asked to be alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_asked)
            self._is_writing = True

    def end(self) -> None:
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()

    @contextmanager
    def between_transactions(self) -> Iterator[None]:
        """The writer goes on with what it has begun, and begins nothing new before the block ends."""
        with self._changed:
            self._is_asked = True
            self._changed.wait_for(lambda: not self._is_writing)
        try:
            yield
        finally:
            with self._changed:
                self._is_asked = False
                self._changed.notify_all()


class LogCopy(Struct, frozen=True):
    """What one copy found and did, in pages."""

    log: int
    done: int  # of the log, by this copy and those before
    new: int  # by this one

    @property
    def is_whole(self) -> bool:
        """False while somebody reads what the database was before."""
        return self.done == self.log


class LogCopier:
    """Copies in steps. Its connection is its own, as a copy waits for no lock and nobody waits for it."""

    def __init__(self, connection: sqlite3.Connection, turns: Turns) -> None:
        self._connection = connection
        self._turns = turns
        self._done = 0
        connection.execute("pragma wal_autocheckpoint = 0")
        connection.execute(f"pragma analysis_limit = {ANALYZED_ROWS}")

    def step(self) -> int:
        """Gives how many pages had to be copied."""
        copy = self._copy()
        if copy.log >= LONG_LOG_PAGES:
            self._let_begin_anew(copy)
        return copy.new

    def _let_begin_anew(self, copy: LogCopy) -> None:
        """The writer stands only for a copy after which it can begin the log anew."""
        for _ in range(COPIES_IN_A_ROW):
            if not copy.is_whole:
                return
            if copy.new <= LITTLE_PAGES or copy.log >= LONGEST_LOG_PAGES:
                with self._turns.between_transactions():
                    self._copy()
                return
            copy = self._copy()

    def _copy(self) -> LogCopy:
        is_busy, pages, done = self._connection.execute("pragma wal_checkpoint(passive)").fetchone()
        if is_busy:  # another process copies
            return LogCopy(0, 0, 0)
        new = done - self._done if done >= self._done else done  # less than before: the log began anew
        self._done = done
        return LogCopy(pages, done, new)

    def analyze(self) -> None:
        """Between transactions: who meets the lock of another connection sleeps, at times for far longer."""
        with self._turns.between_transactions():
            self._connection.execute("pragma optimize").fetchall()

    def close(self) -> None:
        self._connection.close()


def next_pause(pause_seconds: float, copied_pages: int) -> float:
    """So that the next step has about as many pages as a step should have."""
    wanted = pause_seconds * STEP_PAGES / max(copied_pages, 1)
    return min(max(wanted, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


class Checkpointer:
    """A thread that copies the log every now and then, and keeps statistics."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], turns: Turns) -> None:
        self._connect = connect
        self._turns = turns
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="checkpointer", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Connects when the first copy is due: a database that is closed before needs none."""
        copier: LogCopier | None = None
        analyze_at = time.monotonic() + ANALYZE_SECONDS
        pause_seconds = LONGEST_PAUSE_SECONDS
        while not self._stopping.wait(pause_seconds):
            try:
                copier = copier or LogCopier(self._connect(), self._turns)
                pause_seconds = next_pause(pause_seconds, copier.step())
                if time.monotonic() >= analyze_at:
                    analyze_at = time.monotonic() + ANALYZE_SECONDS
                    copier.analyze()
            except sqlite3.OperationalError:
                pass  # no room: whoever writes next is told
            except Exception:
                log.get().exception("the log of the database cannot be copied")
        if copier is not None:
            copier.close()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
