"""The one loop behind every queue: wait for a bell or a while, claim what is due, work on it side by side."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from postroom import log
from postroom.queue.leases import RENEWAL_SECONDS
from postroom.resources import Resources
from postroom.storage.database import Ear, Tx

T = TypeVar("T")

IDLE_SECONDS = 1.0  # how long a loop waits for its bell before it looks at the table anyway
# How long a little room may stay free: a claim is a commit, and takes many as well as one.
ROOM_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Queue(Generic[T]):
    """A table of work. A claim holds for a lease, which is renewed for as long as its work goes on."""

    bell: str
    claim: Callable[[Tx, Sequence[T], int, int], Sequence[T]]  # what runs, how many more, now
    renew: Callable[[Tx, Sequence[T], int], None]
    at_once: int


class Slots(Generic[T]):
    """What runs at once. The ear hears of free room when there is much of it, else after a moment."""

    def __init__(self, at_once: int, ear: Ear) -> None:
        self._at_once = at_once
        self._ear = ear
        self._running: dict[asyncio.Task[None], T] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def free(self) -> int:
        return self._at_once - len(self._running)

    @property
    def items(self) -> list[T]:
        return list(self._running.values())

    def fill(self, item: T, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._running[task] = item
        task.add_done_callback(self._empty)

    async def stop(self) -> None:
        await stop_all([*self._running])

    def _empty(self, done: asyncio.Task[None]) -> None:
        del self._running[done]
        if self.free >= self._at_once // 4:
            self._tell()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ROOM_SECONDS, self._tell)

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ear.hear()


async def work_through(resources: Resources, queue: Queue[T], handle: Callable[[T], Awaitable[None]]) -> None:
    """Runs until cancelled. A claim that is lost, with the process or by an error, comes due again."""
    ear = resources.db.listen(queue.bell)
    slots: Slots[T] = Slots(queue.at_once, ear)
    renewal = asyncio.create_task(_renew_leases(resources, queue, slots))
    try:
        while True:
            for item in await _claim(resources, queue, slots) if slots.free else []:
                slots.fill(item, _handle(handle, item))
            await ear.wait(IDLE_SECONDS)
    finally:
        ear.close()
        await stop_all([renewal])
        await slots.stop()


async def stop_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _claim(resources: Resources, queue: Queue[T], slots: Slots[T]) -> Sequence[T]:
    name = f"claims of {queue.bell}"
    try:
        claimed = await resources.db.write(queue.claim, slots.items, slots.free, resources.now())
    except Exception as error:
        resources.loops.failed(name, error)
        return []
    resources.loops.works(name)
    return claimed


async def _renew_leases(resources: Resources, queue: Queue[T], slots: Slots[T]) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        if slots.items:
            await _renew(resources, queue, slots)


async def _renew(resources: Resources, queue: Queue[T], slots: Slots[T]) -> None:
    """A lease lost means work done twice, never work lost."""
    name = f"leases of {queue.bell}"
    try:
        await resources.db.write(queue.renew, slots.items, resources.now())
    except Exception as error:
        resources.loops.failed(name, error)
    else:
        resources.loops.works(name)


async def _handle(handle: Callable[[T], Awaitable[None]], item: T) -> None:
    try:
        await handle(item)
    except Exception:
        log.get().exception("work failed", item=type(item).__name__)
