"""A thread that runs write functions; those that wait together share one transaction and one fsync.

Each call can be undone by itself, so one that fails never undoes another.
"""

import asyncio
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from postroom import log, pools
from postroom.errors import Unavailable
from postroom.storage.database import Tx

BATCH_LIMIT = 128
RUNS = 50
PART_WAYS_SECONDS = 0.02  # two that wait for each other's rows would meet again if both began at once


class WriteSession(Protocol):
    """A connection that a writer owns, with the statements that frame a transaction."""

    @property
    def engine(self) -> str:
        """`sqlite` or `postgres`: the folder of what only that engine can say."""
        ...

    @property
    def tx(self) -> Tx: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def undo(self) -> None:
        """Back to the savepoint. Raises when the whole transaction is gone."""
        ...

    def must_run_again(self, error: Exception) -> bool: ...
    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Write:
    """An item for a function, which is called once with the items of all jobs that are for it."""

    function: Callable[[Tx, list[Any]], list[Any]]
    item: Any
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class _BatchLost(Exception):
    """The transaction was undone before its commit: every function of the batch has to run again."""


class Writer:
    def __init__(
        self, connect: Callable[[], WriteSession], name: str, jobs: "queue.SimpleQueue[Write | None]"
    ) -> None:
        self._connect = connect
        self._jobs = jobs
        self._session: WriteSession | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _serve(self) -> None:
        while batch := self._next_batch():
            try:
                self._run_batch(batch)
            except Exception as error:
                log.get().exception("a writer failed")
                _fail_all(batch, error)
            _settle(batch)
        if self._session is not None:
            self._session.close()

    def _next_batch(self) -> list[Write]:
        """Waits for one job and takes those behind it. Empty when the writer must stop."""
        batch: list[Write] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH_LIMIT:
                return batch
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._jobs.put(None)
        return batch

    def _run_batch(self, batch: list[Write]) -> None:
        if len(batch) == 1:
            self._run_alone(batch[0])
            return
        try:
            session = self._open_session()
            session.begin()
            _run_calls(session, _calls(batch))
        except Exception:
            self._abandon()
            for job in batch:
                self._run_alone(job)
            return
        self._commit(session, batch)

    def _run_alone(self, job: Write, runs_left: int = RUNS) -> None:
        job.result, job.error = None, None
        try:
            session = self._open_session()
            session.begin()
        except Exception as error:
            self._abandon()
            job.error = error
            return
        try:
            _run_call(session.tx, [job])
        except Exception as error:
            again = runs_left > 1 and session.must_run_again(error)
            self._abandon()
            if again:
                time.sleep(random.uniform(0, PART_WAYS_SECONDS))  # noqa: S311 (no secret)
                self._run_alone(job, runs_left - 1)
            else:
                job.error = error
            return
        self._commit(session, [job])

    def _commit(self, session: WriteSession, batch: list[Write]) -> None:
        """A commit that fails may still have happened, so its functions do not run again."""
        try:
            session.commit()
        except Exception as error:
            self._abandon()
            _fail_all(batch, error)

    def _open_session(self) -> WriteSession:
        if self._session is None:
            self._session = self._connect()
        return self._session

    def _abandon(self) -> None:
        """Rolls back; a session that cannot even do that is replaced by a new one."""
        if self._session is None:
            return
        try:
            self._session.rollback()
        except Exception:
            session, self._session = self._session, None
            session.close()


class WriteQueue:
    """Jobs for one or more writers, handed in from an event loop."""

    def __init__(self, connect: Callable[[], WriteSession], writers: int) -> None:
        self._jobs: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._writers = [Writer(connect, f"writer-{n}", self._jobs) for n in range(writers)]
        self._closed = False

    async def run(self, function: Callable[[Tx], Any]) -> Any:
        return await self.run_together(lambda tx, _: [function(tx)], None)

    async def run_together(self, function: Callable[[Tx, list[Any]], list[Any]], item: Any) -> Any:
        if self._closed:
            raise Unavailable("The server is stopping. Try again.", retry_after=5)
        loop = asyncio.get_running_loop()
        job = Write(function, item, loop, loop.create_future())
        if len(self._writers) == 1:
            # After the callers of this turn of the loop, so that the first does not go off alone.
            loop.call_soon(self._jobs.put, job)
        else:
            self._jobs.put(job)
        return await job.future

    async def close(self) -> None:
        """Finishes what was handed in, then stops the writers."""
        self._closed = True
        await asyncio.sleep(0)  # jobs of this turn of the loop reach the queue first
        for _ in self._writers:
            self._jobs.put(None)
        for writer in self._writers:
            await pools.ONCE.run(writer.join)


def _fail_all(batch: list[Write], error: Exception) -> None:
    for job in batch:
        job.error = job.error or error


def _calls(batch: list[Write]) -> list[list[Write]]:
    """The jobs that are one call of their function, in the order in which each call was first asked for."""
    calls: dict[object, list[Write]] = {}
    for job in batch:
        calls.setdefault(job.function, []).append(job)
    return list(calls.values())


def _run_calls(session: WriteSession, calls: list[list[Write]]) -> None:
    """A call that is alone needs a savepoint only once it has failed."""
    if len(calls) > 1:
        for call in calls:
            _run_in_savepoint(session, call)
        return
    try:
        _run_call(session.tx, calls[0])
    except Exception as error:
        if session.must_run_again(error):
            raise _BatchLost from error
        session.rollback()
        session.begin()
        _fail(session, calls[0], error)


def _run_in_savepoint(session: WriteSession, call: list[Write]) -> None:
    session.savepoint()
    try:
        _run_call(session.tx, call)
    except Exception as error:
        if session.must_run_again(error):
            raise _BatchLost from error
        session.undo()
        _fail(session, call, error)
    else:
        session.release()


def _fail(session: WriteSession, call: list[Write], error: Exception) -> None:
    """Of items that failed together, most are good: halves find the bad ones with few calls."""
    if len(call) == 1:
        call[0].error = error
        return
    middle = len(call) // 2
    _run_in_savepoint(session, call[:middle])
    _run_in_savepoint(session, call[middle:])


def _run_call(tx: Tx, call: list[Write]) -> None:
    results = call[0].function(tx, [job.item for job in call])
    for job, result in zip(call, results, strict=True):
        job.result, job.error = result, None


def _settle(batch: list[Write]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Write]] = {}
    for job in batch:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_results, jobs)
        except RuntimeError:
            continue  # the loop has ended: nobody waits for these answers


def _deliver_results(jobs: list[Write]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
