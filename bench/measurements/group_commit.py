"""Durable inserts with 64 callers on SQLite (synchronous=FULL): group commit beside one commit a call."""

import contextlib
from collections.abc import AsyncIterator

from bench.insert_load import Engine, InsertLoad, compare_inserts
from bench.processes import scratch_folder
from bench.results import Result, at_least_times_peer
from postroom.clock import SystemClock
from postroom.storage.engines.sqlite import SqliteSession, open_sqlite

LOAD = InsertLoad(callers=64, seconds=1.0, rounds=7)


def measure(load: InsertLoad = LOAD) -> list[Result]:
    return [compare_inserts("durable inserts, SQLite", _engine, load, at_least_times_peer(5))]


@contextlib.asynccontextmanager
async def _engine() -> AsyncIterator[Engine]:
    """A new database each time: neither side finds what the other left behind."""
    with scratch_folder() as folder:
        path = folder / "postroom.db"
        db = open_sqlite(path, SystemClock().now())
        try:
            yield Engine(db, lambda: SqliteSession(path), writers=1)
        finally:
            await db.close()
