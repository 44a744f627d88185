"""The connections of the indexing process: one reads the database, one writes the index."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from postroom.storage.database import Tx
from postroom.storage.engines import sqlite_index
from postroom.storage.engines.sqlite import SqliteSession, SqliteTx, connect

P = ParamSpec("P")
T = TypeVar("T")


class SqliteIndexStore:
    def __init__(self, path: Path) -> None:
        self._reader = sqlite_index.attach(connect(path), path)
        self._reader.execute("pragma query_only = on")
        self._session = SqliteSession(sqlite_index.path_beside(path), sqlite_index.connect)

    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._reader.execute("begin")
        try:
            return fn(SqliteTx(self._reader), *args, **kwargs)
        except sqlite3.Error as error:
            sqlite_index.SuspectedDamage().check(error)
            raise
        finally:
            self._reader.execute("rollback")

    async def read_long(
        self, fn: Callable[Concatenate[Tx, P], T], seconds: float, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read without a limit.

        No request waits for this process, and the server kills it if it makes no progress.
        """
        return await self.read(fn, *args, **kwargs)

    async def write_index(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._session.begin()
        try:
            result = fn(self._session.tx, *args, **kwargs)
            self._session.commit()
        except BaseException as error:
            self._session.rollback()
            if isinstance(error, sqlite3.Error):
                sqlite_index.SuspectedDamage().check(error)
            raise
        return result

    def close(self) -> None:
        self._reader.close()
        self._session.close()
