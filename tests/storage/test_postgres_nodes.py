"""Several nodes on one PostgreSQL."""

import asyncio

from postroom.storage.database import Tx
from postroom.storage.postgres import PostgresDatabase, open_postgres
from tests.doubles import START


def make_counters(tx: Tx) -> None:
    tx.run("create table counters (name text primary key, number bigint not null)")
    tx.run("insert into counters (name, number) values ('a', 0), ('b', 0), ('c', 0)")


def count(tx: Tx, *names: str) -> None:
    for name in names:
        tx.run("update counters set number = number + 1 where name = :name", name=name)


def numbers(tx: Tx) -> list[int]:
    return [row["number"] for row in tx.all("select number from counters order by name")]


async def test_nodes_that_lock_rows_in_opposite_order_all_succeed(postgres_url: str) -> None:
    nodes: list[PostgresDatabase] = [await open_postgres(postgres_url, START) for _ in range(2)]
    await nodes[0].write(make_counters)
    orders = [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a"), ("c", "b", "a")]
    await asyncio.gather(
        *(node.write(count, *orders[(n + at) % 4]) for n in range(100) for at, node in enumerate(nodes))
    )
    assert await nodes[1].read(numbers) == [200, 200, 200]
    for node in nodes:
        await node.close()
