"""A database that counts the work of every statement, so that a test sees which ones walk through a table."""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from postroom.storage.bells import BellSubscription
from postroom.storage.database import Database, Row, Tx, Values, WordIndex, in_parts
from postroom.storage.engines.postgres import PostgresTx
from postroom.storage.engines.sqlite import SqliteTx

COUNTED_STEPS = 50


@dataclass
class Work:
    """By statement, the most it has done: steps of SQLite's machine, or rows that PostgreSQL looked at."""

    of: dict[str, int] = field(default_factory=dict)
    total: int = 0

    def note(self, sql: str, amount: int) -> None:
        self.of[sql] = max(self.of.get(sql, 0), amount)
        self.total += amount


class WatchedTx:
    def __init__(self, tx: Tx, work: Work) -> None:
        self._tx = tx
        self._work = work

    def one(self, sql: str, **params: object) -> Row | None:
        with self._watch(sql, params):
            return self._tx.one(sql, **params)

    def all(self, sql: str, **params: object) -> list[Row]:
        with self._watch(sql, params):
            return self._tx.all(sql, **params)

    def ring(self, *bells: str) -> None:
        self._tx.ring(*bells)

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        with self._watch(sql, params):
            return self._tx.tuples(sql, **params)

    def run(self, sql: str, **params: object) -> int:
        with self._watch(sql, params):
            return self._tx.run(sql, **params)

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        if isinstance(self._tx, PostgresTx):
            for statement, values in in_parts(sql, rows, "$"):
                self._explain(self._tx, sql, statement, values)
            return self._tx.many(sql, rows)
        with self._watch(sql, {}):
            return self._tx.many(sql, rows)

    @property
    def fulltext(self) -> WordIndex:
        """Not watched: it looks in parts of its index, and what it finds is counted where it is read."""
        return self._tx.fulltext

    @contextmanager
    def _watch(self, sql: str, params: dict[str, object]) -> Iterator[None]:
        if isinstance(self._tx, PostgresTx):
            self._explain(self._tx, sql, sql, params)
            yield
            return
        assert isinstance(self._tx, SqliteTx)
        steps = [0]

        def count() -> None:
            steps[0] += COUNTED_STEPS

        connection = self._tx._connection
        connection.set_progress_handler(count, COUNTED_STEPS)
        try:
            yield
        finally:
            connection.set_progress_handler(None, 0)
            self._work.note(sql, steps[0])

    def _explain(self, tx: PostgresTx, sql: str, statement: str, params: Any) -> None:
        """Really run, and undone. A small table may well be walked: what counts is that it need not be."""
        tx.run("savepoint explained")
        tx.run("set local enable_seqscan = off")
        explained = f"explain (analyze, timing off, format json) {statement}"
        if isinstance(params, dict):
            row = tx.one(explained, **params)
        else:
            row = tx._execute(explained, params).fetchone()
        tx.run("rollback to explained")
        assert row is not None
        plan = row["QUERY PLAN"]
        self._work.note(sql, looked_at((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


def looked_at(plan: dict[str, Any]) -> int:
    rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    return int(rows * plan["Actual Loops"]) + sum(map(looked_at, plan.get("Plans", [])))


class WatchedDatabase:
    def __init__(self, db: Database, work: Work) -> None:
        self._db = db
        self._work = work

    async def read(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._db.read(lambda tx: fn(WatchedTx(tx, self._work), *args, **kwargs))

    async def find_damage(self, of_index: bool = False) -> str:
        return await self._db.find_damage(of_index)

    async def repair_index(self, is_asked: bool = False) -> str:
        return await self._db.repair_index(is_asked)

    async def write_index(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._db.write_index(lambda tx: fn(WatchedTx(tx, self._work), *args, **kwargs))

    async def sync_index(self) -> None:
        await self._db.sync_index()

    async def read_long(self, fn: Callable[..., Any], seconds: float, *args: Any, **kwargs: Any) -> Any:
        return await self._db.read_long(lambda tx: fn(WatchedTx(tx, self._work), *args, **kwargs), seconds)

    def look_up(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Awaitable[Any]:
        return self.read(fn, *args, **kwargs)

    def version(self) -> int | None:
        return None

    async def write(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._db.write(lambda tx: fn(WatchedTx(tx, self._work), *args, **kwargs))

    async def write_together(self, fn: Callable[..., Any], item: Any, patience_seconds: float = 0.0) -> Any:
        return (await self.write(fn, [item]))[0]

    def ring(self, *bells: str) -> None:
        self._db.ring(*bells)

    def listen(self, bell: str) -> BellSubscription:
        subscription: BellSubscription = self._db.listen(bell)  # type: ignore[assignment]
        return subscription

    async def close(self) -> None:
        await self._db.close()
