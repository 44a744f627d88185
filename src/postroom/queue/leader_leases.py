"""Leases of work that one of all nodes does at a time; a node that died holds none for long."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from postroom.clock import DAY
from postroom.resources import Resources
from postroom.storage.database import Tx


class LeaderLease(Struct, frozen=True):
    name: str
    holder: str  # a node
    held_until: int


FIRST_SECONDS = 5.0  # before a node takes a lease: the start has other things to do
NODE = "node "  # before the id of a node: its presence is stored as a lease too
# With SQLite one process holds the lock of the data folder. It keeps a lease this long, so that an idle
# server writes nothing; a start releases what an earlier process held.
ALONE = DAY


async def hold(resources: Resources, name: str, length: int) -> bool:
    """Return whether this node has the lease now, taken or kept for that long."""
    now, me = resources.now(), resources.node
    if not resources.is_alone:
        return await resources.db.write(take, name, me, now + length, now)
    if await resources.db.read(_has_half, name, me, now):
        return True
    return await resources.db.write(take, name, me, now + ALONE, now)


async def lead(
    resources: Resources,
    name: str,
    length: int,
    work: Callable[[Resources], Awaitable[object]],
    pause_seconds: float,
) -> None:
    """Run until cancelled: while this node has the lease, do the work and pause, again and again."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        if await hold(resources, name, length):
            await work(resources)
        await asyncio.sleep(pause_seconds)


async def announce_node(resources: Resources, where: str, length: int) -> None:
    """Announces where this node runs, valid that long. Dead nodes are removed."""
    now, me = resources.now(), resources.node
    if not resources.is_alone:
        await resources.db.write(show_presence, me, where, now + length, now)
    elif not await resources.db.read(_has_half, NODE + me, where, now):
        await resources.db.write(show_presence, me, where, now + ALONE, now)


async def release_of_earlier(resources: Resources) -> None:
    """Release all leases, at the start of a server that is alone: their holders have died."""
    await resources.db.write(_release_all)


def _has_half(tx: Tx, name: str, holder: str, now: int) -> bool:
    """Return whether half of the time is left: then the lease need not be taken again."""
    row = tx.one("select holder, held_until from duties where name = :name", name=name)
    return row is not None and row["holder"] == holder and row["held_until"] > now + ALONE // 2


def _release_all(tx: Tx) -> None:
    tx.run("delete from duties")


def list_held(tx: Tx, now: int, limit: int) -> list[LeaderLease]:
    """List the leases held now; the holders are live nodes."""
    rows = tx.all(
        "select name, holder, held_until from duties where held_until > :now order by name limit :limit",
        now=now,
        limit=limit,
    )
    return [LeaderLease(row["name"], row["holder"], row["held_until"]) for row in rows]


def show_presence(tx: Tx, node: str, where: str, until: int, now: int) -> None:
    """Announces where a node runs, valid until a moment. Dead nodes are removed."""
    tx.run("delete from duties where name like :nodes and held_until <= :now", nodes=f"{NODE}%", now=now)
    take(tx, NODE + node, where, until, now)


def take(tx: Tx, name: str, holder: str, until: int, now: int) -> bool:
    """Return whether the holder has the lease now, taken or kept until a moment."""
    taken = tx.run(
        "insert into duties (name, holder, held_until) values (:name, :holder, :until)"
        " on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until"
        " where duties.holder = excluded.holder or duties.held_until <= :now",
        name=name,
        holder=holder,
        until=until,
        now=now,
    )
    return taken == 1


def leave(tx: Tx, name: str, holder: str) -> None:
    tx.run("delete from duties where name = :name and holder = :holder", name=name, holder=holder)
