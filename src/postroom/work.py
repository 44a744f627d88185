"""The one loop behind every queue: wait for a bell or a while, claim what is due, work on it side by side."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from postroom import log
from postroom.resources import Resources
from postroom.storage.database import Tx

T = TypeVar("T")
Claim = Callable[[Tx, int, int], Sequence[T]]

IDLE_SECONDS = 1.0


async def work_through(
    resources: Resources, bell: str, claim: Claim[T], handle: Callable[[T], Awaitable[None]], at_once: int
) -> None:
    """Runs until cancelled. A claim that is lost, with the process or by an error, comes due again."""
    ear = resources.db.listen(bell)
    running: set[asyncio.Task[None]] = set()

    def make_room(done: asyncio.Task[None]) -> None:
        running.discard(done)
        ear.hear()

    try:
        while True:
            free = at_once - len(running)
            claimed = await _claim(resources, claim, free) if free else []
            for item in claimed:
                task = asyncio.create_task(_handle(handle, item))
                running.add(task)
                task.add_done_callback(make_room)
            if len(claimed) < free or not free:
                await ear.wait(IDLE_SECONDS)
    finally:
        ear.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _claim(resources: Resources, claim: Claim[T], free: int) -> Sequence[T]:
    try:
        return await resources.db.write(claim, free, resources.now())
    except Exception as error:
        log.get().error("cannot look for work", reason=str(error))
        return []


async def _handle(handle: Callable[[T], Awaitable[None]], item: T) -> None:
    try:
        await handle(item)
    except Exception:
        log.get().exception("work failed", item=type(item).__name__)
