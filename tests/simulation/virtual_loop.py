"""An event loop whose time is virtual: when nothing is left to do now, it is the next timer's moment.

Days pass in seconds, and the same seed gives the same run.
"""

import asyncio
import selectors
from collections.abc import Callable
from functools import partial
from typing import Any

from postroom.processes.pools import Pool


class Standstill(Exception):
    """Nothing will ever happen again, although somebody waits."""


class VirtualSelector(selectors.DefaultSelector):
    """Instead of waiting, it moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Standstill
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """What other programs do in threads is done here, after as long as the schedule says."""

    def __init__(self, thread_seconds: Callable[[], float]) -> None:
        self._clock = VirtualSelector()
        super().__init__(self._clock)
        self._thread_seconds = thread_seconds

    def time(self) -> float:
        return self._clock.now

    def run_in_thread(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        done: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.call_later(self._thread_seconds(), run)
        return done


async def run_virtually(pool: Pool, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Instead of `Pool.run`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return await loop.run_in_thread(partial(fn, *args, **kwargs))
