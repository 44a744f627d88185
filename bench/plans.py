"""The plan of each statement that a piece of work runs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from postroom.storage.database import Row, Tx, Values, WordIndex
from postroom.storage.engines.postgres import PostgresTx
from postroom.storage.engines.sqlite import SqliteTx

STATEMENT_CHARACTERS = 160


class PlannedTx:
    """Runs each statement, and asks for its plan before."""

    def __init__(self, tx: SqliteTx | PostgresTx) -> None:
        self._tx = tx
        self.plans: dict[str, list[str]] = {}

    def one(self, sql: str, **params: object) -> Row | None:
        self._plan(sql, params)
        return self._tx.one(sql, **params)

    def all(self, sql: str, **params: object) -> list[Row]:
        self._plan(sql, params)
        return self._tx.all(sql, **params)

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        self._plan(sql, params)
        return self._tx.tuples(sql, **params)

    def run(self, sql: str, **params: object) -> int:
        self._plan(sql, params)
        return self._tx.run(sql, **params)

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        return self._tx.many(sql, rows)

    def ring(self, *bells: str) -> None: ...

    @property
    def fulltext(self) -> WordIndex:
        return self._tx.fulltext

    def _plan(self, sql: str, params: dict[str, object]) -> None:
        if sql not in self.plans:
            is_sqlite = isinstance(self._tx, SqliteTx)
            rows = self._tx.tuples(f"explain {'query plan ' if is_sqlite else ''}{sql}", **params)
            self.plans[sql] = [str(row[-1]) for row in rows]


def plans_of(tx: SqliteTx | PostgresTx, work: Callable[[Tx], object]) -> Iterator[tuple[str, list[str]]]:
    """Statements that only insert rows have none."""
    planned = PlannedTx(tx)
    work(planned)
    for sql, plan in planned.plans.items():
        if plan:
            yield sql[:STATEMENT_CHARACTERS], plan
