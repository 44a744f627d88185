"""Inserts with 64 callers on PostgreSQL: group commit beside one commit a call on as many connections."""

import contextlib
from collections.abc import AsyncIterator

import psycopg

from bench.insert_load import Engine, InsertLoad, compare_inserts
from bench.results import Result
from postroom.clock import SystemClock
from postroom.storage.engines.postgres import WRITERS, PostgresSession, open_postgres
from tests.postgres_engine import running_postgres

LOAD = InsertLoad(callers=64, seconds=1.0, rounds=5)


def measure(load: InsertLoad = LOAD) -> list[Result]:
    with running_postgres(fsync=True) as url:
        return measure_at(url, load)


def measure_at(url: str, load: InsertLoad) -> list[Result]:
    @contextlib.asynccontextmanager
    async def engine() -> AsyncIterator[Engine]:
        db = await open_postgres(url, SystemClock().now())
        try:
            yield Engine(db, lambda: PostgresSession(url), WRITERS)
        finally:
            await db.close()

    name = f"inserts, PostgreSQL (fsync {_fsync(url)})"
    return [compare_inserts(name, engine, load, aim=None)]


def _fsync(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("show fsync").fetchone()
    return str(row[0]) if row else "unknown"
