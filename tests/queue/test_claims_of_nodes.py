"""Nodes that claim at the same time pass over what another is claiming."""

import asyncio

import psycopg

from postroom.queue import deliveries
from postroom.queue.claims import Claims
from postroom.queue.deliveries import NewDelivery
from postroom.storage.engines.postgres import open_postgres
from tests.doubles import START


def new_delivery(number: int) -> NewDelivery:
    return NewDelivery(
        id=f"dlv_{number:04}",
        account_id="acc_1",
        inbox_id="inb_1",
        kind="mail",
        message_id=f"msg_{number}",
        target=f"{number}@example.com",
        lane=f"{number}.example.com",
        due_at=START,
        created_at=START,
    )


async def test_a_claim_passes_over_what_another_node_holds(postgres_url: str) -> None:
    db = await open_postgres(postgres_url, START)
    await db.write(deliveries.add_all, [new_delivery(number) for number in range(6)])
    with psycopg.connect(postgres_url) as other_node:
        other_node.execute("select 1 from deliveries where id < 'dlv_0003' for update")
        claimed = await db.write(Claims(deliveries.MAIL).claim, [], 10, START)
        assert [delivery.id for delivery in claimed] == ["dlv_0003", "dlv_0004", "dlv_0005"]
        other_node.rollback()
    claimed = await db.write(Claims(deliveries.MAIL).claim, [], 10, START)
    assert [delivery.id for delivery in claimed] == ["dlv_0000", "dlv_0001", "dlv_0002"]
    await db.close()


async def test_nodes_that_claim_side_by_side_get_each_delivery_once(postgres_url: str) -> None:
    nodes = [await open_postgres(postgres_url, START) for _ in range(3)]
    await nodes[0].write(deliveries.add_all, [new_delivery(number) for number in range(120)])
    claimed: list[str] = []

    async def claim_all(number: int) -> None:
        while len(claimed) < 120:
            got = await nodes[number].write(Claims(deliveries.MAIL).claim, [], 7, START)
            claimed.extend(delivery.id for delivery in got)
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(claim_all(number) for number in range(3)))
    assert sorted(claimed) == [f"dlv_{number:04}" for number in range(120)]
    for node in nodes:
        await node.close()
