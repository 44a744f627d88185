"""What a mail costs on one, two and three nodes and on SQLite, and who waits for a node that stands still."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import uvloop

from bench import consumption
from bench.measurements.inbound import DOMAIN, SMALL_BYTES
from bench.measurements.inbound_postgres import postmaster, stored_bytes
from bench.processes import Server, running_postroom, scratch_folder, wait_until_ready
from bench.results import Result, at_most
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, run_smtp_load
from postroom.clock import SystemClock
from postroom.storage.database import Tx
from postroom.storage.engines.postgres import LIMITS_OF_WRITERS, PostgresDatabase, open_postgres
from tests.postgres_engine import running_postgres


@dataclass(frozen=True, slots=True)
class NodesLoad:
    connections: int
    warm_up: int
    mails: int
    most_nodes: int = 3
    freezes: int = 3


LOAD = NodesLoad(connections=20, warm_up=200, mails=1_000)
HELD_APART_SECONDS = 0.02


def measure(load: NodesLoad = LOAD) -> list[Result]:
    with running_postgres(fsync=True) as url, scratch_folder() as folder:
        return measure_at(url, folder, load)


def measure_at(url: str, folder: Path, load: NodesLoad) -> list[Result]:
    seed(folder / "sqlite", load.most_nodes, inboxes_each=1)
    seed(folder / "seeded", load.most_nodes, inboxes_each=1, database_url=url)
    results = _on_sqlite(folder / "sqlite", load)
    for count in range(1, load.most_nodes + 1):
        results += _on_nodes(url, folder, count, load)
    return results + uvloop.run(_with_a_frozen_node(url, load))


def _on_sqlite(folder: Path, load: NodesLoad) -> list[Result]:
    with running_postroom(folder) as server:
        wait_until_ready(server.port)
        _take([server], load, load.warm_up, "warm-up")
        before = consumption.of_family(server.pid)
        _take([server], load, load.mails, "run")
        use = consumption.of_family(server.pid) - before
    return [Result("SQLite: processor time of a mail", use.cpu_seconds * 1000 / load.mails, "ms")]


def _on_nodes(url: str, folder: Path, count: int, load: NodesLoad) -> list[Result]:
    with _running_nodes(url, folder, count) as nodes, psycopg.connect(url, autocommit=True) as connection:
        _take(nodes, load, load.warm_up, f"warm-up {count}")
        pids = [*(node.pid for node in nodes), postmaster(connection)]
        before = [consumption.of_family(pid) for pid in pids]
        size, log = stored_bytes(connection)
        rate = _take(nodes, load, load.mails, f"run {count}")
        used = [consumption.of_family(pid) - use for pid, use in zip(pids, before, strict=True)]
        size_after, log_after = stored_bytes(connection)
    name = f"{count} node{'s' * (count > 1)}"
    each = 1000 / load.mails
    return [
        Result(f"{name}: mails of 5 kB", rate, "mails/s"),
        Result(
            f"{name}: processor time of a mail, nodes", sum(u.cpu_seconds for u in used[:-1]) * each, "ms"
        ),
        Result(f"{name}: processor time of a mail, database", used[-1].cpu_seconds * each, "ms"),
        Result(f"{name}: tables of a mail", (size_after - size) / 1000 / load.mails, "kB"),
        Result(f"{name}: log of a mail", (log_after - log) / 1000 / load.mails, "kB"),
    ]


@contextlib.contextmanager
def _running_nodes(url: str, folder: Path, count: int) -> Iterator[list[Server]]:
    """Each with a folder of its own, and one folder of large mails for all."""
    (folder / "blobs").mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        folders = [folder / f"node-{count}-{number}" for number in range(count)]
        for own in folders:
            own.mkdir()
            (own / "blobs").symlink_to(folder / "blobs")
        with ThreadPoolExecutor(count) as starting:
            nodes = list(starting.map(lambda own: stack.enter_context(_running_node(own, url)), folders))
        yield nodes


@contextlib.contextmanager
def _running_node(folder: Path, url: str) -> Iterator[Server]:
    with running_postroom(folder, POSTROOM_DATABASE_URL=url) as node:
        wait_until_ready(node.port)
        yield node


def _take(nodes: list[Server], load: NodesLoad, count: int, run: str) -> float:
    """Side by side, each node for an account of its own. Gives the rate of all."""

    def take(number: int) -> float:
        share = count // len(nodes) + (number < count % len(nodes))
        connections = max(1, load.connections // len(nodes))
        recipient = f"bench-{number}-0@{DOMAIN}"
        port = nodes[number].smtp_port
        return run_smtp_load(
            SmtpLoad(port, recipient, connections, share, SMALL_BYTES, run=f"{run} {number}")
        ).per_second

    with ThreadPoolExecutor(len(nodes)) as clients:
        rates = list(clients.map(take, range(len(nodes))))
    for node in nodes:
        consumption.settle(node.pid)
    return sum(rates)


async def _with_a_frozen_node(url: str, load: NodesLoad) -> list[Result]:
    """As long as it holds the row; what needs the row keeps coming meanwhile."""
    db = await open_postgres(url, SystemClock().now())
    try:
        others, held = await _time_writes(url, db, load)
    finally:
        await db.close()
    p99 = sorted(others)[len(others) * 99 // 100]
    return [
        Result("a frozen node: writes of others, p99", p99 * 1000, "ms", at_most(100)),
        Result("a frozen node: writes that need its row", max(held), "s", at_most(3)),
    ]


async def _time_writes(url: str, db: PostgresDatabase, load: NodesLoad) -> tuple[list[float], list[float]]:
    """In seconds: of others, and of those that need the row."""
    await db.write(_make_counters)
    others: list[float] = []
    held: list[float] = []
    for _ in range(load.freezes):
        with _frozen_node(url):
            first = asyncio.create_task(_timed(db, "held"))
            coming = asyncio.create_task(_keep_asking(db, "held", first))
            while not first.done():
                others.append(await _timed(db, "free"))
            held += await coming
    return others, held


@contextlib.contextmanager
def _frozen_node(url: str) -> Iterator[None]:
    """As a node that was stopped in mid-transaction: it holds a row, by a session that says nothing."""
    with psycopg.connect(url) as frozen:
        for setting, value in LIMITS_OF_WRITERS.items():
            frozen.execute("select set_config(%s, %s, false)", (setting, value))
        frozen.execute("update counters set number = 0 where name = 'held'")
        yield
        with contextlib.suppress(psycopg.Error):
            frozen.rollback()


async def _keep_asking(db: PostgresDatabase, name: str, first: asyncio.Task[float]) -> list[float]:
    asked = [first]
    while not first.done():
        await asyncio.sleep(HELD_APART_SECONDS)
        asked.append(asyncio.create_task(_timed(db, name)))
    return await asyncio.gather(*asked)


def _make_counters(tx: Tx) -> None:
    tx.run("create table counters (name text primary key, number bigint not null)")
    tx.run("insert into counters (name, number) values ('held', 0), ('free', 0)")


def _count(tx: Tx, name: str) -> None:
    tx.run("update counters set number = number + 1 where name = :name", name=name)


async def _timed(db: PostgresDatabase, name: str) -> float:
    began = time.perf_counter()
    await db.write(_count, name)
    return time.perf_counter() - began
