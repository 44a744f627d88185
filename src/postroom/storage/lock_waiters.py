"""Threads for calls that wait for a locked row, so that no other call has to wait."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count

from postroom import log
from postroom.errors import Unavailable
from postroom.storage.write_jobs import ThreadSession, WriteJob, WriteSession, fail_all, run_call, settle

WAITERS = 4
FIRST_TURN_MILLISECONDS = 100  # longer than a transaction that makes progress holds a row
TURN_MILLISECONDS = 250
LOCKED_SECONDS = 0.5  # after a turn that timed out, a row counts as locked for two turns
LOCK_WAIT_SECONDS = 4.5
LAST = float("inf")


class LockWaiters:
    """Threads that retry blocked calls in short turns. The call with the fewest turns goes first.

    A failing call of many jobs is split in halves, until each job is tried alone: then none holds rows
    that another needs. After a success, calls without a turn yet return to the writer, to be run together.
    """

    def __init__(
        self,
        connect: Callable[[], WriteSession],
        jobs: "queue.SimpleQueue[WriteJob | None]",
        waiters: int = WAITERS,
    ) -> None:
        self._connect = connect
        self._jobs = jobs
        self._waiters = waiters
        self._threads: list[threading.Thread] = []
        self._queue: queue.PriorityQueue[tuple[float, int, list[WriteJob]]] = queue.PriorityQueue()
        self._numbers = count()
        self._starting = threading.Lock()
        self._locked_until = 0.0
        self._stopping = False

    def take(self, calls: Sequence[list[WriteJob]]) -> None:
        for call in calls:
            for job in call:
                job.ends = job.ends or time.monotonic() + LOCK_WAIT_SECONDS
            self._put(call, turns=0)
        with self._starting:
            if calls and len(self._threads) < self._waiters:
                self._threads.append(threading.Thread(target=self._serve, name="lock-waiter", daemon=True))
                self._threads[-1].start()

    def is_any_row_locked(self) -> bool:
        """Return whether a transaction that may be stuck holds a row.

        If so, a waiter has just spent a whole turn on it.
        """
        return time.monotonic() < self._locked_until

    def close(self) -> None:
        """Called after the last call was handed in. Waiting calls get one more turn."""
        self._stopping = True
        for _ in self._threads:
            self._put([], turns=LAST)
        for thread in self._threads:
            thread.join()

    def _put(self, call: list[WriteJob], turns: float) -> None:
        self._queue.put((turns, next(self._numbers), call))

    def _serve(self) -> None:
        session = ThreadSession(self._connect)
        while True:
            turns, _, call = self._queue.get()
            if not call:
                break
            try:
                self._take_turn(session, call, turns)
            except Exception as error:
                log.get().exception("a lock waiter failed")
                _refuse(call, error)
        session.close()

    def _take_turn(self, own: ThreadSession, call: list[WriteJob], turns: float) -> None:
        try:
            session = own.open()
        except Exception as error:
            _refuse(call, error)
            return
        try:
            session.begin()
            session.wait_at_most(TURN_MILLISECONDS if turns else FIRST_TURN_MILLISECONDS)
            run_call(session.tx, call)
        except Exception as error:
            is_lost = own.abandon()
            if session.is_lock_timeout(error):
                self._locked_until = time.monotonic() + LOCKED_SECONDS
            if is_lost or session.is_lock_timeout(error) or session.must_run_again(error):
                self._try_again(call, turns, error)
            elif len(call) == 1:
                _refuse(call, error)
            else:
                self._split(call, turns)
            return
        self._finish(own, session, call)

    def _finish(self, own: ThreadSession, session: WriteSession, call: list[WriteJob]) -> None:
        """Commit a call. A failed commit may still have taken effect, so its functions do not run again."""
        try:
            session.commit()
        except Exception as error:
            own.abandon()
            _refuse(call, error)
            return
        settle(call)
        self._send_back()

    def _try_again(self, call: list[WriteJob], turns: float, error: Exception) -> None:
        now = time.monotonic()
        late = [job for job in call if self._stopping or (job.ends is not None and job.ends < now)]
        if late:
            busy = Unavailable("Another request is changing this. Try again.", retry_after=5)
            busy.__cause__ = error
            _refuse(late, busy)
        if left := [job for job in call if job not in late]:
            self._split(left, turns)

    def _split(self, call: list[WriteJob], turns: float) -> None:
        middle = len(call) // 2
        for half in (call[:middle], call[middle:]):
            if half:
                self._put(half, turns + 1)

    def _send_back(self) -> None:
        """Return calls without a turn to the writer, after a lock was released."""
        if self._stopping:
            return  # the writer has ended
        kept = []
        while True:
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
            if entry[0] == 0:
                for job in entry[2]:
                    self._jobs.put(job)
            else:
                kept.append(entry)
        for entry in kept:
            self._queue.put(entry)


def _refuse(call: Sequence[WriteJob], error: Exception) -> None:
    fail_all(call, error)
    settle(call)
