import asyncio

import pytest

from postroom.couriers.lanes import Lanes


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Work:
    """Enters a lane, notes it, and stays until told to go."""

    def __init__(self, lanes: Lanes, journal: list[str]) -> None:
        self._lanes = lanes
        self._journal = journal
        self._gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str, name: str) -> None:
        self._gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._run(key, name))

    async def end(self, name: str) -> None:
        self._gates[name].set()
        await self.tasks[name]
        await settle()

    async def _run(self, key: str, name: str) -> None:
        async with self._lanes.enter(key):
            self._journal.append(name)
            await self._gates[name].wait()


async def test_who_waits_is_served_in_order_of_arrival() -> None:
    journal: list[str] = []
    work = Work(Lanes(per_key=1, overall=10), journal)
    for name in ("a", "b", "c"):
        work.start("key", name)
    await settle()
    assert journal == ["a"]
    await work.end("a")
    assert journal == ["a", "b"]
    await work.end("b")
    await work.end("c")
    assert journal == ["a", "b", "c"]


async def test_a_crowded_key_leaves_the_common_line_to_others() -> None:
    journal: list[str] = []
    work = Work(Lanes(per_key=1, overall=2), journal)
    for number in range(5):
        work.start("crowded", f"crowded{number}")
    work.start("other", "other")
    await settle()
    assert journal == ["crowded0", "other"]
    for name in ("other", *(f"crowded{number}" for number in range(5))):
        await work.end(name)


async def test_room_comes_back_even_after_a_cancelled_wait() -> None:
    journal: list[str] = []
    work = Work(Lanes(per_key=1, overall=10), journal)
    work.start("key", "a")
    work.start("key", "b")
    work.start("key", "c")
    await settle()
    assert journal == ["a"]
    work.tasks["b"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await work.tasks["b"]
    await work.end("a")
    await settle()
    assert journal == ["a", "c"]
    await work.end("c")
