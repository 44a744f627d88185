"""The loop of upkeep: the size of its transactions, its place among nodes, and where it continues."""

import asyncio
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.clock import DAY
from postroom.net.dns import Resolver
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from postroom.upkeep import upkeep_loop
from postroom.upkeep.upkeep_loop import FEWEST_ROWS, MOST_ROWS, STEP_SECONDS, Steps, run_upkeep
from tests.conftest import Server, settings
from tests.doubles import START, FakeClock
from tests.filled_inbox import fill


@pytest.fixture
async def resources(database_url: str, tmp_path: Path, clock: FakeClock) -> Resources:
    config = settings(tmp_path, DATABASE_URL=database_url)
    db = await open_database(config, START)
    return Resources(config, db, LocalBlobs(tmp_path / "blobs"), clock, Resolver(), asyncio.Event())


@pytest.mark.sqlite_alone
async def test_after_a_slow_step_the_next_is_half_as_large_down_to_a_bound(resources: Resources) -> None:
    asked: list[int] = []

    def slow(tx: Tx, now: int, rows: int) -> bool:
        asked.append(rows)
        time.sleep(2 * STEP_SECONDS)
        return True

    steps = Steps(resources)
    steps._rows = MOST_ROWS
    for _ in range(7):
        assert await steps._step(slow, START)
    assert asked == [500, 250, 125, 62, 31, 15, FEWEST_ROWS]
    await resources.db.close()


@pytest.mark.sqlite_alone
async def test_while_it_runs_a_node_is_known_and_holds_the_duty_and_no_longer(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_leases, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(upkeep_loop, "LEAVE_SECONDS", 60.0)
    running = asyncio.create_task(run_upkeep(resources))

    async def held() -> list[leader_leases.LeaderLease]:
        return await resources.db.read(leader_leases.list_held, START, 10)

    async with asyncio.timeout(60):
        while len(found := await held()) < 2:
            await asyncio.sleep(0.01)
    node, lease = sorted(found, key=lambda each: not each.name.startswith(leader_leases.NODE))
    assert node.holder == upkeep_loop.where(resources)
    assert (lease.name, leader_leases.NODE + lease.holder) == (upkeep_loop.LEASE, node.name)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await held() == []
    await resources.db.close()


class SharedBlobs:
    """A store that several nodes have in common, and that notes whether it is looked through."""

    is_shared = True

    def __init__(self) -> None:
        self.was_listed = asyncio.Event()

    def names(self, _older_than_seconds: float) -> list[str]:
        self.was_listed.set()
        return []


async def test_a_node_without_the_duty_removes_nothing_and_leaves_a_common_store_alone(
    resources: Resources, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_leases, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(upkeep_loop, "ROUND_SECONDS", 0.01)

    def fill_and_delete(tx: Tx) -> None:
        tx.run("insert into accounts (id, name, plan, created_at) values ('acc', 'n', 'free', 1)")
        tx.run("insert into removed_inboxes (inbox_id, removed_at) values ('inb', 0)")
        leader_leases.take(tx, upkeep_loop.LEASE, "another", START + DAY, START)

    await resources.db.write(fill_and_delete)
    blobs = SharedBlobs()
    running = asyncio.create_task(run_upkeep(replace(resources, blobs=blobs)))
    for _ in range(3):  # at its start, with its first round, and who says it again has finished that
        clock.turn(1)
        async with asyncio.timeout(60):
            while clock.now() + upkeep_loop.LEASE_HELD not in await resources.db.read(ends):
                await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not blobs.was_listed.is_set()
    assert await resources.db.read(lambda tx: len(tx.all("select 1 as n from removed_inboxes"))) == 1
    await resources.db.close()


def ends(tx: Tx) -> set[int]:
    return {lease.held_until for lease in leader_leases.list_held(tx, START, 10)}


async def test_a_round_continues_with_the_inboxes_where_the_last_one_stopped(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_loop, "INBOXES_AT_ONCE", 1)
    monkeypatch.setattr(upkeep_loop, "INBOXES_IN_A_ROUND", 1)
    account_id = (await server.api.get("/v1/me")).json()["accountId"]

    def fill_three(tx: Tx) -> list[str]:
        made = [fill(tx, account_id, f"own-{n}", "postroom.localhost", 2, START) for n in range(3)]
        tx.run("update inboxes set retention_days = 1")
        tx.run(
            "insert into raw_mails (message_id, size_bytes, content) select id, 1, :content from messages",
            content=b"x",
        )
        return sorted(made)

    def full(tx: Tx) -> list[str]:
        return sorted({row["inbox_id"] for row in tx.all("select inbox_id from messages")})

    made = await server.resources.db.write(fill_three)
    server.clock.turn(2 * DAY)
    steps = Steps(server.resources)
    for left in (made[1:], made[2:], []):
        await steps.one_round()
        assert await server.resources.db.read(full) == left
