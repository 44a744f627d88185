"""Checkpoints SQLite's log in another thread than the writer's.

A checkpoint takes no lock that a commit needs, so both run concurrently. But the log restarts only when all
of it is copied, and a busy writer is always some pages ahead: the log would grow for ever. So once it is
long, the writer pauses between two transactions, for the few pages that came during the last copy.
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
# From this length on the log should restart, once little is left to copy; beyond the longest in any case.
LONG_LOG_PAGES = 8_000
LITTLE_PAGES = 100
LONGEST_LOG_PAGES = 32_000
COPIES_IN_A_ROW = 6
# The planner's statistics, from a sample of each index, so that they take milliseconds.
ANALYZE_SECONDS = 600.0
ANALYZED_ROWS = 400


class Turns:
    """Coordinates the writer's transactions with work between them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_writing = False
        self._is_asked = False
        self._count = 0
        self._is_over = False

    def begin(self) -> None:
        """Called before a transaction: waits for `between_transactions`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_asked)
            self._is_writing = True

    def end(self) -> None:
        with self._changed:
            self._is_writing = False
            self._count += 1
            self._changed.notify_all()

    def wait_for_one(self, after: int) -> int:
        """Waits for a transaction later than that number, or the end. Returns the number of the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._count != after)
            return self._count

    def stop(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    @contextmanager
    def between_transactions(self) -> Iterator[None]:
        """Let the writer finish its transaction and start no other before the block ends."""
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
        """Return False while a reader still uses an older state of the database."""
        return self.done == self.log


class LogCopier:
    """Copies in steps, on its own connection: a copy waits for no lock, and nothing waits for it."""

    def __init__(self, connection: sqlite3.Connection, turns: Turns) -> None:
        self._connection = connection
        self._turns = turns
        self._done = 0
        connection.execute("pragma wal_autocheckpoint = 0")
        connection.execute(f"pragma analysis_limit = {ANALYZED_ROWS}")

    def step(self) -> int:
        """Returns how many pages had to be copied."""
        copy = self._copy()
        if copy.log >= LONG_LOG_PAGES:
            self._let_begin_anew(copy)
        return copy.new

    def _let_begin_anew(self, copy: LogCopy) -> None:
        """Pauses the writer only for a copy after which the log can restart."""
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
        new = done - self._done if done >= self._done else done  # less than before: the log has restarted
        self._done = done
        return LogCopy(pages, done, new)

    def analyze(self) -> None:
        """Analyze between transactions.

        A connection that meets another's lock sleeps, sometimes for far too long.
        """
        with self._turns.between_transactions():
            self._connection.execute("pragma optimize").fetchall()

    def close(self) -> None:
        self._connection.close()


def next_pause(pause_seconds: float, copied_pages: int) -> float:
    """Return the next pause, so that the next step has about the right number of pages."""
    wanted = pause_seconds * STEP_PAGES / max(copied_pages, 1)
    return min(max(wanted, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


class Checkpointer:
    """A thread that copies the log from time to time, and updates statistics."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], turns: Turns) -> None:
        self._connect = connect
        self._turns = turns
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="checkpointer", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        """Connects when the first copy is due: a database closed before needs none."""
        copier: LogCopier | None = None
        analyze_at = time.monotonic() + ANALYZE_SECONDS
        pause_seconds, last, is_whole = LONGEST_PAUSE_SECONDS, 0, True
        while not self._stopping.wait(pause_seconds):
            if is_whole:  # nothing to copy until the next transaction
                last = self._turns.wait_for_one(last)
                if self._stopping.is_set():
                    break
            try:
                copier = copier or LogCopier(self._connect(), self._turns)
                copied = copier.step()
                is_whole = not copied
                pause_seconds = next_pause(pause_seconds, copied)
                if time.monotonic() >= analyze_at:
                    analyze_at = time.monotonic() + ANALYZE_SECONDS
                    copier.analyze()
            except sqlite3.OperationalError:
                pass  # no space: the next writer gets the error
            except Exception:
                log.get().exception("the log of the database cannot be copied")
        if copier is not None:
            copier.close()

    def close(self) -> None:
        self._stopping.set()
        self._turns.stop()
        self._thread.join()
