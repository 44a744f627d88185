"""Several nodes on one PostgreSQL."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from postroom.storage.database import LOCK_ROWS, Database, Tx
from postroom.storage.engines.postgres import PostgresDatabase, open_postgres
from postroom.storage.engines.postgres_bells import PAYLOAD_BYTES, in_payloads
from tests.doubles import START


@pytest.fixture
async def nodes(postgres_url: str) -> AsyncIterator[list[PostgresDatabase]]:
    """Three, which end with their test, however that ends."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(3):
            opened.append(await open_postgres(postgres_url, START))
            stack.push_async_callback(opened[-1].close)
        yield opened


def make_counters(tx: Tx) -> None:
    tx.run("create table counters (name text primary key, number bigint not null)")
    tx.run("insert into counters (name, number) values ('a', 0), ('b', 0), ('c', 0)")


def count(tx: Tx, *names: str) -> None:
    for name in names:
        tx.run("update counters set number = number + 1 where name = :name", name=name)


def numbers(tx: Tx) -> list[int]:
    return [row["number"] for row in tx.all("select number from counters order by name")]


async def test_nodes_that_lock_rows_in_opposite_order_all_succeed(nodes: list[PostgresDatabase]) -> None:
    await nodes[0].write(make_counters)
    orders = [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a"), ("c", "b", "a")]
    await asyncio.gather(
        *(node.write(count, *orders[(n + at) % 4]) for n in range(100) for at, node in enumerate(nodes[:2]))
    )
    assert await nodes[1].read(numbers) == [200, 200, 200]


async def test_all_statements_of_a_read_see_the_same_moment(nodes: list[PostgresDatabase]) -> None:
    node = nodes[0]
    await node.write(make_counters)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def look_twice(tx: Tx) -> tuple[list[int], list[int]]:
        first = numbers(tx)
        has_begun.set()
        assert may_go_on.wait(120)
        return first, numbers(tx)

    reading = asyncio.create_task(node.read(look_twice))
    assert await asyncio.to_thread(has_begun.wait, 120)
    await node.write(count, "a")
    may_go_on.set()
    assert await reading == ([0, 0, 0], [0, 0, 0])
    assert await node.read(numbers) == [1, 0, 0]


async def until_it_hears(hearing: Database, ringing: Database) -> None:
    """Who has just connected hears every bell once; that is over when it hears the other's."""
    subscription = hearing.listen("hello")
    async with asyncio.timeout(60):
        while not await subscription.wait(0.1):
            ringing.ring("hello")


async def test_another_node_hears_a_ring_and_the_one_that_rang_does_not_hear_it_twice(
    nodes: list[PostgresDatabase],
) -> None:
    here, there, _ = nodes
    await until_it_hears(here, there)
    await until_it_hears(there, here)
    own, other, last = here.listen("mail"), there.listen("mail"), here.listen("last")
    here.ring("mail")
    assert await own.wait(60)
    assert await other.wait(60)
    there.ring("last")  # notifications come in the order of their commits
    assert await last.wait(60)
    assert not await own.wait(0)


def test_names_fill_notifications_and_none_is_torn() -> None:
    names = [f"events:{number}" for number in range(5_000)]
    parts = list(in_payloads(" ".join(names)))
    assert [name for part in parts for name in part.split()] == names
    assert all(PAYLOAD_BYTES - 20 < len(part) <= PAYLOAD_BYTES for part in parts[:-1])
    assert list(in_payloads("mail")) == ["mail"]


async def test_a_locked_row_makes_another_node_wait_for_its_change_and_for_its_lock(
    nodes: list[PostgresDatabase],
) -> None:
    await nodes[0].write(make_counters)
    is_locked, may_go_on = threading.Event(), threading.Event()

    def lock(tx: Tx) -> int:
        row = tx.one(f"select number from counters where name = 'a' {LOCK_ROWS}")
        assert row is not None
        return int(row["number"])

    def lock_and_wait(tx: Tx) -> int:
        before = lock(tx)
        is_locked.set()
        assert may_go_on.wait(60)
        count(tx, "a")
        return before

    first = asyncio.create_task(nodes[0].write(lock_and_wait))
    assert await asyncio.to_thread(is_locked.wait, 60)
    change, second = (
        asyncio.create_task(nodes[1].write(count, "a")),
        asyncio.create_task(nodes[2].write(lock)),
    )
    await nodes[1].write(count, "b")  # another row is free
    assert [task.done() for task in (change, second)] == [False, False]
    may_go_on.set()
    assert await first == 0
    await change
    assert await second in (1, 2)
    assert await nodes[0].read(numbers) == [2, 1, 0]
