"""A thread that runs write functions; those that wait together share one transaction and one fsync.

Each call can be rolled back alone, so a failing one never undoes another. A call that needs a locked row
goes to the lock waiters, and the others go on.
"""

import asyncio
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from postroom import log
from postroom.errors import Unavailable
from postroom.processes import pools, process_metrics
from postroom.storage.database import Tx
from postroom.storage.lock_waiters import LockWaiters
from postroom.storage.write_jobs import ThreadSession, WriteJob, WriteSession, fail_all, run_call, settle

BATCH_LIMIT = 128
GATHER_SECONDS = 0.002
ENOUGH = 6  # jobs for a commit: waiting for more would leave parsers idle
SPARSE_BATCH = 2  # after a batch this small, more jobs are unlikely to come soon
TURNS_SECONDS = 0.02  # of turns of the loop that each bring jobs
RUNS = 50
RETRY_SPREAD_SECONDS = 0.02  # two that deadlocked would do so again if both restarted at once
# If items failed together at a locked row, halving finds those that need it: how long and how often.
HALF_MILLISECONDS = 5
HALVES = 7
# While a row is known to be locked, others probably are too: a call waits only so long for one, and then
# goes to the lock waiters.
HELD_MILLISECONDS = 2


class _BatchLost(Exception):
    """The transaction was rolled back before its commit: every function of the batch has to run again."""


class _Transaction(Struct):
    session: WriteSession
    # Calls that need a row locked by another transaction.
    blocked: list[list[WriteJob]] = field(default_factory=list)
    halves_left: int = HALVES
    waits_briefly: bool = False  # a lock timed out: the others wait less

    def wait_briefly(self) -> None:
        if not self.waits_briefly:
            self.waits_briefly = True
            self.session.wait_at_most(HALF_MILLISECONDS)


class Batches:
    """The jobs of a queue, in batches of those that wait together.

    A commit rewrites the last page of every tree, whether for one job or for ten. So jobs with patience wait
    for others, as long as each short pause brings some.
    """

    def __init__(
        self, jobs: "queue.SimpleQueue[WriteJob | None]", pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._jobs = jobs
        self._pause = pause
        self._are_more_likely = False

    def next(self) -> list[WriteJob]:
        """Waits for one job and takes those behind it. Empty if the writer must stop."""
        first = self._jobs.get()
        if first is None:
            return []
        batch = [first]
        may_be_more = self._take_waiting(batch)
        while may_be_more and self._are_more_likely and len(batch) < ENOUGH and _have_time(batch):
            before = len(batch)
            self._pause(GATHER_SECONDS)
            may_be_more = self._take_waiting(batch) and len(batch) > before
        self._are_more_likely = len(batch) > SPARSE_BATCH
        return batch

    def _take_waiting(self, batch: list[WriteJob]) -> bool:
        """Adds waiting jobs. True if the batch may take more."""
        while len(batch) < BATCH_LIMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return True
            if job is None:
                self._jobs.put(None)
                return False
            batch.append(job)
        return False


def _have_time(batch: Sequence[WriteJob]) -> bool:
    now = time.monotonic()
    return all(now < job.handed_in_at + job.patience_seconds for job in batch)


class Writer:
    def __init__(
        self,
        connect: Callable[[], WriteSession],
        name: str,
        jobs: "queue.SimpleQueue[WriteJob | None]",
        lock_waiters: LockWaiters,
    ) -> None:
        self._own = ThreadSession(connect)
        self._batches = Batches(jobs)
        self._lock_waiters = lock_waiters
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _serve(self) -> None:
        while batch := self._batches.next():
            process_metrics.BATCHES.observe(len(batch))
            process_metrics.WAITS.observe(time.monotonic() - batch[0].handed_in_at)
            blocked: list[list[WriteJob]] = []
            try:
                blocked = self._run_batch(batch)
            except Exception as error:
                log.get().exception("a writer failed")
                fail_all(batch, error)
            settle(_without(batch, blocked))
            self._lock_waiters.take(blocked)
            del batch, blocked  # until the next batch nobody needs their items
        self._own.close()

    def _run_batch(self, batch: list[WriteJob]) -> list[list[WriteJob]]:
        """Returns the calls that wait for a lock."""
        try:
            transaction = _Transaction(self._own.open())
        except Exception as error:
            fail_all(batch, error)
            return []
        if len(batch) == 1:
            return self._run_alone(batch[0])
        try:
            transaction.waits_briefly = self._begin(transaction.session)
            _run_calls(transaction, _calls(batch))
        except Exception:
            self._own.abandon()
            return [call for job in batch for call in self._run_alone(job)]
        self._commit(transaction.session, _without(batch, transaction.blocked))
        return transaction.blocked

    def _run_alone(self, job: WriteJob, runs_left: int = RUNS) -> list[list[WriteJob]]:
        job.result, job.error = None, None
        try:
            session = self._own.open()
        except Exception as error:
            job.error = error
            return []
        try:
            self._begin(session)
            run_call(session.tx, [job])
        except Exception as error:
            return self._go_on(job, session, error, runs_left)
        self._commit(session, [job])
        return []

    def _begin(self, session: WriteSession) -> bool:
        """Return True if this transaction waits for locks only briefly."""
        session.begin()
        is_any_held = self._lock_waiters.is_any_row_locked()
        if is_any_held:
            session.wait_at_most(HELD_MILLISECONDS)
        return is_any_held

    def _go_on(
        self, job: WriteJob, session: WriteSession, error: Exception, runs_left: int
    ) -> list[list[WriteJob]]:
        """Continue after a failed run, of which nothing was committed."""
        if self._own.abandon() and runs_left == RUNS:
            return self._run_alone(job, runs_left=1)  # a session may have broken while it was idle
        if session.is_lock_timeout(error):
            return [[job]]
        if runs_left > 1 and session.must_run_again(error):
            time.sleep(random.uniform(0, RETRY_SPREAD_SECONDS))  # noqa: S311 (no secret)
            return self._run_alone(job, runs_left - 1)
        job.error = error
        return []

    def _commit(self, session: WriteSession, jobs: Sequence[WriteJob]) -> None:
        """Commit the jobs. A failed commit may still have taken effect, so they do not run again."""
        try:
            session.commit()
        except Exception as error:
            self._own.abandon()
            fail_all(jobs, error)


class _Gathered(Struct):
    """Jobs of a few turns of the loop, on their way to the writer."""

    loop: asyncio.AbstractEventLoop
    ends_at: float
    jobs: list[WriteJob] = []


class WriteQueue:
    """Jobs for one or more writers, handed in from an event loop."""

    def __init__(self, connect: Callable[[], WriteSession], writers: int, ring: Callable[..., None]) -> None:
        self._ring = ring
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._lock_waiters = LockWaiters(connect, self._jobs)
        self._writers = [
            Writer(connect, f"writer-{n}", self._jobs, self._lock_waiters) for n in range(writers)
        ]
        self._closed = False
        self._gathered: _Gathered | None = None

    async def run(self, function: Callable[[Tx], Any]) -> Any:
        return await self.run_together(lambda tx, _: [function(tx)], None)

    async def run_together(
        self, function: Callable[[Tx, list[Any]], list[Any]], item: Any, patience_seconds: float = 0.0
    ) -> Any:
        if self._closed:
            raise Unavailable("The server is stopping. Try again.", retry_after=5)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = WriteJob(function, item, loop, future, self._ring, patience_seconds)
        if len(self._writers) == 1:
            self._gather(job)
        else:
            self._jobs.put(job)
        try:
            return await future
        finally:
            del future  # an error holds this frame, and would be held by it with the item

    def _gather(self, job: WriteJob) -> None:
        """Hands jobs over once a turn of the loop brings no more, so that the first gets no commit alone."""
        gathered = self._gathered
        if gathered is None or gathered.loop is not job.loop:
            gathered = self._gathered = _Gathered(job.loop, job.handed_in_at + TURNS_SECONDS)
            job.loop.call_soon(self._look_again, gathered, 0)
        gathered.jobs.append(job)

    def _look_again(self, gathered: "_Gathered", before: int) -> None:
        count = len(gathered.jobs)
        if before < count < BATCH_LIMIT and time.monotonic() < gathered.ends_at:
            gathered.loop.call_soon(self._look_again, gathered, count)
        else:
            self._hand_over(gathered)

    def _hand_over(self, gathered: "_Gathered") -> None:
        for job in gathered.jobs:
            self._jobs.put(job)
        gathered.jobs.clear()
        if self._gathered is gathered:
            self._gathered = None

    async def close(self) -> None:
        """Finishes all jobs, then stops the writers."""
        self._closed = True
        if self._gathered is not None:
            self._hand_over(self._gathered)
        for _ in self._writers:
            self._jobs.put(None)
        for writer in self._writers:
            await pools.ONCE.run(writer.join)
        await pools.ONCE.run(self._lock_waiters.close)
        _refuse_all(self._jobs)  # what the lock waiters sent back when the writers had ended


def _refuse_all(jobs: "queue.SimpleQueue[WriteJob | None]") -> None:
    while not jobs.empty():
        job = jobs.get()
        if job is not None:
            job.error = Unavailable("The server is stopping. Try again.", retry_after=5)
            settle([job])


def _without(batch: Sequence[WriteJob], blocked: Sequence[list[WriteJob]]) -> Sequence[WriteJob]:
    if not blocked:
        return batch
    left_out = {job for call in blocked for job in call}
    return [job for job in batch if job not in left_out]


def _calls(batch: list[WriteJob]) -> list[list[WriteJob]]:
    """Group the jobs by function, in the order in which each function first appears."""
    calls: dict[object, list[WriteJob]] = {}
    for job in batch:
        calls.setdefault(job.function, []).append(job)
    return list(calls.values())


def _run_calls(transaction: _Transaction, calls: list[list[WriteJob]]) -> None:
    """Run the calls. A single call needs a savepoint only after it has failed."""
    if len(calls) > 1:
        for call in calls:
            _run_in_savepoint(transaction, call)
        return
    session = transaction.session
    try:
        run_call(session.tx, calls[0])
    except Exception as error:
        if session.must_run_again(error):
            raise _BatchLost from error
        session.rollback()
        session.begin()
        transaction.waits_briefly = False
        _fail(transaction, calls[0], error)


def _run_in_savepoint(transaction: _Transaction, call: list[WriteJob]) -> None:
    session = transaction.session
    session.savepoint()
    try:
        run_call(session.tx, call)
    except Exception as error:
        if session.must_run_again(error):
            raise _BatchLost from error
        session.undo()
        _fail(transaction, call, error)
    else:
        session.release()


def _fail(transaction: _Transaction, call: list[WriteJob], error: Exception) -> None:
    """Halve a call whose items failed together.

    Most items are good, and halving finds the bad ones in few calls.
    """
    is_lock_timeout = transaction.session.is_lock_timeout(error)
    if is_lock_timeout:
        transaction.wait_briefly()
    if is_lock_timeout and (len(call) == 1 or not transaction.halves_left):
        transaction.blocked.append(call)
        return
    if len(call) == 1:
        call[0].error = error
        return
    if is_lock_timeout:
        transaction.halves_left -= 1
    middle = len(call) // 2
    _run_in_savepoint(transaction, call[:middle])
    _run_in_savepoint(transaction, call[middle:])
