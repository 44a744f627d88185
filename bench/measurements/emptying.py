"""How long others wait while the mail of a deleted inbox is removed, on both databases."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvloop

from bench.processes import scratch_folder
from bench.results import Result, at_most
from postroom import config
from postroom.accounts import accounts
from postroom.accounts.reach import Reach
from postroom.assembly import open_database
from postroom.clock import SystemClock
from postroom.config import Config
from postroom.mailbox import inboxes
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from postroom.upkeep import upkeep
from tests.filled_inbox import NUMBERS, fill
from tests.postgres_engine import running_postgres

MAILS = 20_000
MOST_WAIT_MS = 20.0
RAW_BYTES = 4096
PROBES_ALONE = 300
BETWEEN_PROBES_SECONDS = 0.003


@dataclass
class Timed:
    """A database that notes how long the work of each write took, without the wait before and the commit."""

    db: Database
    works_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    async def write(self, work: Callable[..., Any], *args: Any) -> Any:
        return await self.db.write(self._timed, work, *args)

    def _timed(self, tx: Tx, work: Callable[..., Any], *args: Any) -> Any:
        started, cpu = time.perf_counter(), time.thread_time()
        try:
            return work(tx, *args)
        finally:
            self.works_ms.append((time.perf_counter() - started) * 1000)
            self.cpu_ms.append((time.thread_time() - cpu) * 1000)


def measure(size: int = MAILS) -> list[Result]:
    with scratch_folder() as folder:
        results = uvloop.run(_measure("SQLite", {}, folder, size))
    with scratch_folder() as folder, running_postgres(fsync=True) as url:
        return results + uvloop.run(_measure("PostgreSQL", {"POSTROOM_DATABASE_URL": url}, folder, size))


async def _measure(name: str, settings: dict[str, str], folder: Path, size: int) -> list[Result]:
    chosen = config.load({"POSTROOM_DATA_DIR": str(folder), **settings})
    now = SystemClock().now()
    db = await open_database(chosen, now)
    try:
        await db.write(_fill_and_delete, chosen, size, now)
        alone = sorted([await _probe(db) for _ in range(PROBES_ALONE)])
        timed = Timed(db)
        beside = sorted(await _empty(_resources(chosen, db, folder), timed))
    finally:
        await db.close()
    added = beside[int(len(beside) * 0.99)] - alone[int(len(alone) * 0.99)]
    return [
        Result(f"{name}: steps for {size} mails", len(timed.works_ms), ""),
        Result(f"{name}: longest step", max(timed.works_ms), "ms"),
        Result(f"{name}: processor time of the dearest step", max(timed.cpu_ms), "ms"),
        Result(f"{name}: another write, alone, p99", alone[int(len(alone) * 0.99)], "ms"),
        Result(f"{name}: another write, beside it, p99 more", added, "ms", at_most(MOST_WAIT_MS)),
        Result(f"{name}: another write, beside it, longest", beside[-1], "ms"),
    ]


def _resources(chosen: Config, db: Database, folder: Path) -> Resources:
    return Resources(chosen, db, LocalBlobs(folder / "blobs"), SystemClock(), Resolver(), asyncio.Event())


async def _empty(resources: Resources, timed: Timed) -> list[float]:
    """Gives how long other writes waited meanwhile."""
    waits: list[float] = []
    emptying = asyncio.create_task(upkeep.one_round(replace(resources, db=timed)))  # type: ignore[arg-type]
    while not emptying.done():
        waits.append(await _probe(resources.db))
    await emptying
    return waits


async def _probe(db: Database) -> float:
    await asyncio.sleep(BETWEEN_PROBES_SECONDS)
    started = time.perf_counter()
    await db.write(lambda tx: tx.run("update accounts set name = name"))
    return (time.perf_counter() - started) * 1000


def _fill_and_delete(tx: Tx, chosen: Config, size: int, now: int) -> None:
    account = accounts.add(tx, "bench", "developer", now)
    inbox_id = fill(tx, account.id, "bench", chosen.domain, size, now)
    values = {"count": size, "inbox_id": inbox_id}
    tx.run(
        f"insert into raw_mails (message_id, content, size_bytes) {NUMBERS} select 'msg_' || :inbox_id"
        " || (100000000 + n), :content, :size from numbers",
        content=b"x" * RAW_BYTES,
        size=RAW_BYTES,
        **values,
    )
    for table, columns, value in (
        ("handovers", "inbox_id, content_hash, received_at", "n, :now"),
        ("correspondents", "inbox_id, address", "n || '@example.com'"),
    ):
        given = {"now": now} if ":now" in value else {}
        tx.run(
            f"insert into {table} ({columns}) {NUMBERS} select :inbox_id, {value} from numbers",
            **values,
            **given,
        )
    inboxes.remove(tx, Reach(account.id), inbox_id, now)
