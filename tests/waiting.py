"""Waiting for what another thread or process brings about."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

LIMIT_SECONDS = 120  # of patience: the machine may be busy
PAUSE_SECONDS = 0.01

Found = TypeVar("Found")


@overload
async def until(condition: Callable[[], Awaitable[Found | None]], what: str = ...) -> Found: ...
@overload
async def until(condition: Callable[[], Found | None], what: str = ...) -> Found: ...
async def until(condition: Callable[[], Any], what: str = "it never came") -> Any:
    """What is found, as soon as it is something. Other tasks go on meanwhile."""
    end = time.monotonic() + LIMIT_SECONDS
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, what
        await asyncio.sleep(PAUSE_SECONDS)


def wait_until(condition: Callable[[], Found | None], what: str = "it never came") -> Found:
    """The same where no other task is."""
    end = time.monotonic() + LIMIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(PAUSE_SECONDS)
    return found
