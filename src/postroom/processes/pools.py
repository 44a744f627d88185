"""Threads for work that would block the event loop: one bounded pool for each purpose.

Work that waits in one pool does not delay another: slow DNS look-ups keep no file from being written.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

CORES = os.cpu_count() or 1


class Pool:
    """Threads are started when they are first needed."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self.jobs = 0  # under way or waiting
        self._threads = ThreadPoolExecutor(threads, name)

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        self.jobs += 1
        try:
            return await loop.run_in_executor(self._threads, partial(fn, *args, **kwargs))
        finally:
            self.jobs -= 1

    def close(self) -> None:
        """Waits for what is under way."""
        self._threads.shutdown(wait=True)


class ProcessPool:
    """A process a core, for a command with much to read. What is run and given must be picklable."""

    def __init__(self, preloaded: str) -> None:
        """The module is loaded once, for all of them."""
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
ONCE = Pool("once", 4)  # what a process does once: migrations, certificates, the end of other threads
ALL = (DNS, FILES, READING, COMPOSING, KEYS, ONCE)
