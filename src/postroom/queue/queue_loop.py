"""The loop behind every queue: wait for a bell or a timeout, claim what is due, work on it concurrently."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from postroom import log
from postroom.errors import Unavailable
from postroom.queue.leases import RENEWAL_SECONDS
from postroom.resources import Resources
from postroom.storage.database import BellListener, Tx

T = TypeVar("T")

IDLE_SECONDS = 1.0  # how long a loop waits for its bell before it looks at the table anyway
# How long a few slots may stay free: a claim is a commit, and takes many as well as one.
ROOM_SECONDS = 0.05
# After a long outage of the database claims have expired, and their holders, on any node, get so
# much time to record their outcomes before others claim them.
RECOVERY_SECONDS = 5.0


class Queue(Struct, Generic[T], frozen=True):
    """A table of work. A claim holds for a lease, which is renewed while its work goes on."""

    bell: str
    is_due: Callable[[Tx, int], bool]  # a look that costs less than a claim, which is a commit
    claim: Callable[[Tx, Sequence[T], int, int], Sequence[T]]  # what runs, how many more, now
    renew: Callable[[Tx, Sequence[T], int], None]
    at_once: int
    finish_seconds: float = 0.0  # how long a stop waits for work under way


class Slots(Generic[T]):
    """The work under way. The listener is woken when many slots are free, else after a moment."""

    def __init__(self, at_once: int, subscription: BellListener) -> None:
        self._at_once = at_once
        self._subscription = subscription
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

    async def finish(self, seconds: float) -> None:
        """Waits for work under way, at most `seconds`."""
        if self._running and seconds:
            await asyncio.wait([*self._running], timeout=seconds)

    async def stop(self) -> None:
        await stop_all([*self._running])

    def _empty(self, done: asyncio.Task[None]) -> None:
        del self._running[done]
        if self.free >= self._at_once // 4:
            self._wake()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ROOM_SECONDS, self._wake)

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._subscription.wake()


class Outage:
    """Since when the database is unreachable, and until when nothing is claimed after a long outage."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._rests_until = 0.0

    @property
    def is_long(self) -> bool:
        return self._since is not None and _time() - self._since > RENEWAL_SECONDS

    @property
    def is_resting(self) -> bool:
        return _time() < self._rests_until

    def began(self) -> None:
        self._since = _time() if self._since is None else self._since

    def ended(self) -> None:
        if self.is_long:
            self._rests_until = _time() + RECOVERY_SECONDS
        self._since = None


def _time() -> float:
    return asyncio.get_running_loop().time()


async def run_queue(resources: Resources, queue: Queue[T], handle: Callable[[T], Awaitable[None]]) -> None:
    """Runs until cancelled. If the process dies or an error occurs, the claim comes due again."""
    subscription = resources.db.listen(queue.bell)
    slots: Slots[T] = Slots(queue.at_once, subscription)
    outage = Outage()
    renewal = asyncio.create_task(_renew_leases(resources, queue, slots, outage))
    is_rung = True
    try:
        while True:
            if outage.is_long:
                await _renew(resources, queue, slots, outage)
            elif slots.free and not outage.is_resting:
                for item in await _claim(resources, queue, slots, outage, is_rung):
                    slots.fill(item, _handle(handle, item))
            is_rung = await subscription.wait(IDLE_SECONDS)
    finally:
        subscription.close()
        await slots.finish(queue.finish_seconds)
        await stop_all([renewal])
        await slots.stop()


async def stop_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _claim(
    resources: Resources, queue: Queue[T], slots: Slots[T], outage: Outage, is_rung: bool
) -> Sequence[T]:
    """Claim work. Without a ring it reads first: an idle server begins no transaction of its writer."""
    name, claimed = f"claims of {queue.bell}", list[T]()
    try:
        if is_rung or await resources.db.read(queue.is_due, resources.now()):
            claimed = [*await resources.db.write(queue.claim, slots.items, slots.free, resources.now())]
    except Exception as error:
        _record_failure(resources, name, error, outage)
        return []
    resources.loops.works(name)
    outage.ended()
    return claimed


async def _renew_leases(resources: Resources, queue: Queue[T], slots: Slots[T], outage: Outage) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        if slots.items:
            await _renew(resources, queue, slots, outage)


async def _renew(resources: Resources, queue: Queue[T], slots: Slots[T], outage: Outage) -> None:
    """Renew the leases. A lost one means that work is done twice, never that it is lost."""
    name = f"leases of {queue.bell}"
    try:
        await resources.db.write(queue.renew, slots.items, resources.now())
    except Exception as error:
        _record_failure(resources, name, error, outage)
    else:
        resources.loops.works(name)
        outage.ended()


def _record_failure(resources: Resources, name: str, error: Exception, outage: Outage) -> None:
    resources.loops.failed(name, error)
    if isinstance(error, Unavailable):
        outage.began()


async def _handle(handle: Callable[[T], Awaitable[None]], item: T) -> None:
    try:
        await handle(item)
    except Unavailable as error:  # a row was locked for long, or the database is down: its claim expires
        log.get().seldom("work was put off", item=type(item).__name__, reason=error.message)
    except Exception:
        log.get().exception("work failed", item=type(item).__name__)
