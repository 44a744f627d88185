"""Jobs for a writer thread, its database session, and how results return to the callers."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from postroom.processes import process_metrics
from postroom.storage.database import Tx


class WritingTx(Tx, Protocol):
    rung: list[str]  # the bells requested since the call began


class WriteSession(Protocol):
    """A connection owned by a writer, with the statements that begin and end a transaction."""

    @property
    def engine(self) -> str:
        """`sqlite` or `postgres`: the folder of engine-specific SQL."""
        ...

    @property
    def tx(self) -> "WritingTx": ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def undo(self) -> None:
        """Rolls back to the savepoint. Raises if the whole transaction is lost."""
        ...

    def must_run_again(self, error: Exception) -> bool: ...
    def is_lock_timeout(self, error: Exception) -> bool:
        """Return whether another transaction held a lock for longer than this one waits."""
        ...

    def wait_at_most(self, milliseconds: int) -> None:
        """Limits the wait for locks until this transaction ends."""
        ...

    def close(self) -> None: ...


class WriteJob(Struct, eq=False):
    """An item for a function, which is called once with the items of all its jobs."""

    function: Callable[[Tx, list[Any]], list[Any]]
    item: Any
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any] | None  # None once the result was given to the caller
    ring: Callable[..., None]
    patience_seconds: float = 0.0  # how long it may wait for others to share its commit
    result: Any = None
    error: Exception | None = None
    kinds: Sequence[str] = ()  # of events recorded by its last call; stored in the first job of a call
    bells: Sequence[str] = ()  # requested by its last call; stored in the first job of a call
    handed_in_at: float = field(default_factory=time.monotonic)
    ends: float | None = None  # when a job that waits for a lock is refused


class ThreadSession:
    """The session of one thread, replaced when it breaks."""

    def __init__(self, connect: Callable[[], WriteSession]) -> None:
        self._connect = connect
        self._session: WriteSession | None = None

    def open(self) -> WriteSession:
        if self._session is None:
            self._session = self._connect()
        return self._session

    def abandon(self) -> bool:
        """Rolls back. True if the session could not even do that, and was closed."""
        if self._session is None:
            return False
        try:
            self._session.rollback()
        except Exception:
            self.close()
            return True
        return False

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def run_call(tx: WritingTx, call: Sequence[WriteJob]) -> None:
    kinds = process_metrics.begin_call()
    tx.rung = []
    results = call[0].function(tx, [job.item for job in call])
    for job, result in zip(call, results, strict=True):
        job.result, job.error, job.kinds, job.bells = result, None, (), ()
    call[0].kinds, call[0].bells = kinds, tx.rung


def fail_all(jobs: Sequence[WriteJob], error: Exception) -> None:
    for job in jobs:
        job.error = job.error or error


def settle(jobs: Sequence[WriteJob]) -> None:
    """Give the results to the callers, each in its own loop, after the commit or its failure."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in jobs:
        for kind in job.kinds if job.error is None else ():
            process_metrics.EVENTS.increment(kind)
        by_loop.setdefault(job.loop, []).append(job)
    for loop, of_loop in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_results, of_loop)
        except RuntimeError:
            continue  # the loop has ended, with its callers


def _deliver_results(jobs: list[WriteJob]) -> None:
    for job in jobs:
        if job.bells and job.error is None:
            job.ring(*dict.fromkeys(job.bells))
        future, error = job.future, job.error
        job.future = job.error = None  # an error holds the frames that the job was in
        if future is None or future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(job.result)
