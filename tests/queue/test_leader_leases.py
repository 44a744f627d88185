"""Duties of a server that is alone: kept without writing, and released by the next start."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.clock import DAY, MINUTE
from postroom.queue import leader_leases
from postroom.queue.leader_leases import LeaderLease
from postroom.resources import Resources
from postroom.storage.opening import open_database
from tests.conftest import Server, running_server, settings
from tests.doubles import START, FakeClock


async def held(resources: Resources) -> list[LeaderLease]:
    found: list[LeaderLease] = await resources.db.read(leader_leases.list_held, resources.now(), 50)
    return found


def writes(server: Server) -> int | None:
    """Changes with each commit that writes."""
    return server.resources.db.version()


@pytest.mark.sqlite_alone
async def test_a_server_that_is_alone_keeps_a_duty_for_half_a_day_without_writing(
    server: Server, clock: FakeClock
) -> None:
    alone = replace(server.resources, node="me")
    assert await leader_leases.hold(alone, "a test", MINUTE)
    await leader_leases.announce_node(alone, "here", MINUTE)
    before = writes(server)
    clock.turn(DAY // 2 - 1)
    assert await leader_leases.hold(alone, "a test", MINUTE)
    await leader_leases.announce_node(alone, "here", MINUTE)
    assert writes(server) == before
    clock.turn(1)
    assert await leader_leases.hold(alone, "a test", MINUTE)
    assert writes(server) != before
    assert not await leader_leases.hold(replace(alone, node="another"), "a test", MINUTE)


async def test_one_of_several_nodes_holds_a_duty_no_longer_than_it_says(
    server: Server, clock: FakeClock
) -> None:
    one, two = (replace(server.resources, node=name, is_alone=False) for name in ("one", "two"))
    assert await leader_leases.hold(one, "a test", MINUTE)
    assert not await leader_leases.hold(two, "a test", MINUTE)
    clock.turn(MINUTE // 2)
    assert await leader_leases.hold(one, "a test", MINUTE)
    clock.turn(MINUTE - 1)
    assert not await leader_leases.hold(two, "a test", MINUTE)
    clock.turn(1)
    assert await leader_leases.hold(two, "a test", MINUTE)


@pytest.mark.sqlite_alone
async def test_a_start_releases_what_a_killed_server_held(tmp_path: Path, clock: FakeClock) -> None:
    config = settings(tmp_path)
    db = await open_database(config, START)
    await db.write(leader_leases.take, "a test", "the killed one", START + DAY, START)
    await db.close()
    async with running_server(config, clock) as server:
        assert "the killed one" not in [each.holder for each in await held(server.resources)]
        assert await leader_leases.hold(server.resources, "a test", MINUTE)
