"""The loop behind every queue: it claims what fits, works side by side, and survives what fails."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from postroom import log
from postroom.errors import Unavailable
from postroom.net.dns import Resolver
from postroom.queue import queue_loop
from postroom.queue.queue_loop import Queue, Slots, run_queue
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.doubles import FakeClock
from tests.waiting import until


@pytest.fixture
async def resources(db: Database, tmp_path: Path, clock: FakeClock) -> Resources:
    blobs, resolver = LocalBlobs(tmp_path / "blobs"), cast(Resolver, None)
    return Resources(settings(tmp_path), db, blobs, clock, resolver, asyncio.Event())


@dataclass
class Shelf:
    """Work in memory, taken in its order."""

    waiting: list[int]
    asked: list[tuple[list[int], int]] = field(default_factory=list)
    faults: int = 0
    looks: int = 0
    is_any_due: bool = True

    def is_due(self, tx: Tx, now: int) -> bool:
        self.looks += 1
        return self.is_any_due

    def claim(self, tx: Tx, running: Sequence[int], limit: int, now: int) -> Sequence[int]:
        self.asked.append((sorted(running), limit))
        if self.faults:
            self.faults -= 1
            raise RuntimeError("the disk is full")
        taken, self.waiting = self.waiting[:limit], self.waiting[limit:]
        return taken

    def renew(self, tx: Tx, running: Sequence[int], now: int) -> None:
        raise AssertionError("nothing runs that long here")


@contextlib.asynccontextmanager
async def working(
    resources: Resources, shelf: Shelf, handle: Callable[[int], Awaitable[None]], at_once: int
) -> AsyncIterator[None]:
    queue: Queue[int] = Queue("bell", shelf.is_due, shelf.claim, shelf.renew, at_once)
    task = asyncio.create_task(run_queue(resources, queue, handle))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.sqlite_alone
async def test_without_a_ring_nothing_is_claimed_until_something_is_due(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_loop, "IDLE_SECONDS", 0.001)
    shelf, done = Shelf([], is_any_due=False), list[int]()

    async def handle(item: int) -> None:
        done.append(item)

    async with working(resources, shelf, handle, at_once=3):
        await until(lambda: shelf.looks > 3)
        assert len(shelf.asked) == 1, "its start claims without a look"
        shelf.waiting, shelf.is_any_due = [7], True
        await until(lambda: done == [7])


@pytest.mark.sqlite_alone
async def test_no_more_run_at_once_than_there_is_room_and_all_are_done(resources: Resources) -> None:
    shelf, done, release = Shelf(list(range(7))), list[int](), asyncio.Event()

    async def handle(item: int) -> None:
        await release.wait()
        done.append(item)

    async with working(resources, shelf, handle, at_once=3):
        await until(lambda: len(shelf.waiting) == 4)
        resources.db.ring("bell")
        await asyncio.sleep(0.05)
        assert (shelf.waiting, done) == ([3, 4, 5, 6], [])
        release.set()
        await until(lambda: len(done) == 7)
    assert sorted(done) == list(range(7))
    assert all(len(running) + limit == 3 for running, limit in shelf.asked)


@pytest.mark.sqlite_alone
async def test_work_that_fails_and_a_claim_that_fails_end_nothing(resources: Resources) -> None:
    shelf, done = Shelf([1, 2, 3], faults=1), list[int]()

    async def handle(item: int) -> None:
        if item == 2:
            raise ValueError("no")
        done.append(item)

    async with working(resources, shelf, handle, at_once=2):
        await until(lambda: sorted(done) == [1, 3])


@pytest.mark.sqlite_alone
async def test_a_bell_wakes_the_loop_and_a_stop_ends_the_work_under_way(resources: Resources) -> None:
    shelf, started, ended = Shelf([]), list[int](), list[int]()

    async def handle(item: int) -> None:
        started.append(item)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    async with working(resources, shelf, handle, at_once=2):
        await until(lambda: bool(shelf.asked))
        shelf.waiting.append(9)
        resources.db.ring("bell")
        await until(lambda: started == [9])
    assert ended == [9]


class CountingEar:
    """Counts how often it is told that there is room."""

    def __init__(self) -> None:
        self.heard = 0

    def wake(self) -> None:
        self.heard += 1

    async def wait(self, timeout: float) -> bool:
        raise AssertionError("nobody waits here")

    def close(self) -> None:
        raise AssertionError("nobody closes it here")


async def test_a_quarter_of_the_room_is_told_at_once_and_less_only_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_loop, "ROOM_SECONDS", 3_600.0)
    subscription = CountingEar()
    slots: Slots[int] = Slots(8, subscription)
    ends = [asyncio.Event() for _ in range(8)]
    told: list[int] = []
    for number, end in enumerate(ends):
        slots.fill(number, wait_for(end))
    for end in ends[:3]:
        end.set()
        while slots.free <= len(told):
            await asyncio.sleep(0)
        told.append(subscription.heard)
    assert told == [0, 1, 2]
    await slots.stop()


async def wait_for(end: asyncio.Event) -> None:
    await end.wait()


@pytest.mark.sqlite_alone
async def test_a_row_that_is_locked_puts_work_off_and_is_no_bug(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = log.Logger()  # one that has not written the line a moment ago, for another test
    monkeypatch.setattr(log, "get", lambda: logger)
    tried = asyncio.Event()

    async def handle(item: int) -> None:
        tried.set()
        raise Unavailable("Another request is changing this. Try again.")

    async with working(resources, Shelf([1]), handle, at_once=1):
        async with asyncio.timeout(120):
            await tried.wait()
        await asyncio.sleep(0)
    logged = capsys.readouterr().err
    assert "work was put off" in logged
    assert "Traceback" not in logged
