"""The one loop behind every queue: wait for a bell or a while, claim what is due, work on it side by side."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from postroom import log
from postroom.resources import Resources
from postroom.storage.database import Tx

T = TypeVar("T")

IDLE_SECONDS = 1.0
RENEWAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Queue(Generic[T]):
    """A table of work. A claim holds for a lease, which is renewed for as long as its work goes on."""

    bell: str
    claim: Callable[[Tx, Sequence[T], int, int], Sequence[T]]  # what runs, how many more, now
    renew: Callable[[Tx, Sequence[T], int], None]
    at_once: int


async def work_through(resources: Resources, queue: Queue[T], handle: Callable[[T], Awaitable[None]]) -> None:
    """Runs until cancelled. A claim that is lost, with the process or by an error, comes due again."""
    ear = resources.db.listen(queue.bell)
    running: dict[asyncio.Task[None], T] = {}

    def make_room(done: asyncio.Task[None]) -> None:
        del running[done]
        ear.hear()

    renewal = asyncio.create_task(_renew_leases(resources, queue, running))
    try:
        while True:
            free = queue.at_once - len(running)
            claimed = await _claim(resources, queue, list(running.values()), free) if free else []
            for item in claimed:
                task = asyncio.create_task(_handle(handle, item))
                running[task] = item
                task.add_done_callback(make_room)
            if len(claimed) < free or not free:
                await ear.wait(IDLE_SECONDS)
    finally:
        ear.close()
        await stop_all([renewal, *running])


async def stop_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _claim(resources: Resources, queue: Queue[T], running: Sequence[T], free: int) -> Sequence[T]:
    try:
        return await resources.db.write(queue.claim, running, free, resources.now())
    except Exception as error:
        log.get().error("cannot look for work", queue=queue.bell, reason=str(error))
        return []


async def _renew_leases(resources: Resources, queue: Queue[T], running: dict[asyncio.Task[None], T]) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        if running:
            with contextlib.suppress(Exception):  # a lease lost means work done twice, never work lost
                await resources.db.write(queue.renew, list(running.values()), resources.now())


async def _handle(handle: Callable[[T], Awaitable[None]], item: T) -> None:
    try:
        await handle(item)
    except Exception:
        log.get().exception("work failed", item=type(item).__name__)
