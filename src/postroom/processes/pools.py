"""Threads for work that would block the event loop: one limited pool for each purpose.

Work waiting in one pool does not delay another: slow DNS look-ups do not block writing files.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")

CORES = os.cpu_count() or 1


class _Job(NamedTuple):
    work: Callable[[], Any]
    future: asyncio.Future[Any]


class Pool:
    """Threads start on first use. An executor takes three times as long for a call."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self.jobs = 0  # under way or waiting
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._started: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_closed = False
        _OPEN.add(self)

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the pool. Cancelling before the work has begun prevents it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError(f"the threads of the pool {self.name} have ended")
            if len(self._started) < min(self.jobs + 1, self.threads):
                self._start_thread()
            self.jobs += 1
            self._waiting.put(_Job(partial(fn, *args, **kwargs), future))
        try:
            return await future
        finally:
            del future  # an error holds this frame, and would be held by it with all that was given

    def close(self) -> None:
        """Waits for all submitted work."""
        with self._lock:
            self._is_closed = True
            for _ in self._started:
                self._waiting.put(None)
        for thread in self._started:
            thread.join()
        _OPEN.discard(self)

    def _start_thread(self) -> None:
        name = f"{self.name}_{len(self._started)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        thread.start()
        self._started.append(thread)

    def _serve(self) -> None:
        while job := self._waiting.get():
            if job.future.cancelled():
                self._is_done()
            else:
                self._run(job)
            del job  # and with it the result

    def _run(self, job: _Job) -> None:
        """Run a job, marked as done before its result is delivered.

        The caller's next work then needs no new thread.
        """
        try:
            result = job.work()
        except BaseException as error:  # the caller gets it
            self._is_done()
            _resolve(job, None, error)
        else:
            self._is_done()
            _resolve(job, result, None)
        finally:
            del job

    def _is_done(self) -> None:
        with self._lock:
            self.jobs -= 1


def _resolve(job: _Job, result: object, error: BaseException | None) -> None:
    with suppress(RuntimeError):  # the loop has ended, with its callers
        job.future.get_loop().call_soon_threadsafe(_settle, job.future, result, error)


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return  # the caller was cancelled
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


_OPEN: "WeakSet[Pool]" = WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_OPEN):
        pool.close()


class ProcessPool:
    """One process per core, for a command that reads much. Functions and arguments must be picklable."""

    def __init__(self, preloaded: str) -> None:
        """Load the module once, for all processes."""
        from concurrent.futures import ProcessPoolExecutor  # the server has no use for it
        from multiprocessing import get_context

        context = get_context("forkserver")
        context.set_forkserver_preload([preloaded])
        self._processes = ProcessPoolExecutor(CORES, context)

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._processes, partial(fn, *args, **kwargs))

    def close(self) -> None:
        self._processes.shutdown(wait=True, cancel_futures=True)


DNS = Pool("dns", 32)  # checks of senders: mostly waiting for answers
FILES = Pool("files", 8)  # blobs and spooled mail
READING = Pool("reading", max(2, CORES))  # mail whose reading may take long
COMPOSING = Pool("composing", max(2, CORES))  # large requests to mail
KEYS = Pool("keys", 1)  # making the key of a domain takes a core for a moment
ONCE = Pool("once", 4)  # what a process does once: migrations, certificates, joining other threads
ALL = (DNS, FILES, READING, COMPOSING, KEYS, ONCE)
