"""SQLite: one writer thread with group commit; short indexed reads run directly in the event loop."""

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from postroom.errors import Unavailable
from postroom.processes import pools
from postroom.storage.bells import Bells, BellSubscription
from postroom.storage.database import Item, Overdue, Row, StorageError, Tx, Values, in_parts
from postroom.storage.engines import sqlite_index
from postroom.storage.engines.sqlite_fulltext import SqliteFulltext
from postroom.storage.engines.sqlite_log import LONG_LOG_PAGES, Checkpointer, Turns
from postroom.storage.group_commit import WriteQueue
from postroom.storage.migrate import migrate

P = ParamSpec("P")
T = TypeVar("T")

SYNCHRONOUS_FULL = 2
CACHE_KILOBYTES = 16_000
# For a connection without a checkpointer: it copies the log itself.
LATEST_CHECKPOINT_PAGES = 32_000
PAGE_BYTES = 4096
LONG_READERS = 2
STEPS_BETWEEN_LOOKS = 2_000  # of SQLite's virtual machine, between checks of the clock
PRIMARY_CODE = 0xFF
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGE_CHARACTERS = 300
PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY}  # the disk's trouble, not a bug


def connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=30
        )
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma wal_autocheckpoint = {LATEST_CHECKPOINT_PAGES}")
        connection.execute(f"pragma cache_size = -{CACHE_KILOBYTES}")
        connection.execute("pragma temp_store = memory")  # an insert of many rows writes a statement journal
        connection.execute("pragma foreign_keys = on")
    except sqlite3.DatabaseError as error:
        raise StorageError(f"POSTROOM_DATA_DIR: {path} cannot be opened: {error}.") from error
    _require_full_durability(connection)
    return connection


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the writer. Another thread checkpoints the log meanwhile. A long log is truncated."""
    connection = connect(path)
    connection.execute("pragma wal_autocheckpoint = 0")
    connection.execute(f"pragma journal_size_limit = {LONG_LOG_PAGES * PAGE_BYTES}")
    return connection


def _require_full_durability(connection: sqlite3.Connection) -> None:
    """Refuse a build of SQLite that ignores a pragma: no answer may come before its fsync."""
    (synchronous,) = connection.execute("pragma synchronous").fetchone()
    (journal_mode,) = connection.execute("pragma journal_mode").fetchone()
    if synchronous != SYNCHRONOUS_FULL or journal_mode != "wal":
        raise StorageError("This SQLite cannot run in WAL mode with synchronous=FULL on this file system.")


def execute(
    connection: sqlite3.Connection, sql: str, params: dict[str, object] | list[object]
) -> sqlite3.Cursor:
    try:
        return connection.execute(sql, params)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & PRIMARY_CODE in PASSING:
            raise Unavailable("Nothing can be stored now. Try again.", retry_after=5) from error
        raise


# Rows are dicts, as on PostgreSQL: sqlite3.Row finds each column by scanning all of their names.
def _to_rows(cursor: sqlite3.Cursor) -> list[Row]:
    found = cursor.fetchall()
    if not found:
        return []
    names = _names(cursor)
    return [dict(zip(names, values, strict=True)) for values in found]


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


class SqliteTx:
    __slots__ = ("_connection", "rung")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.rung: list[str] = []

    def ring(self, *bells: str) -> None:
        self.rung += bells

    def one(self, sql: str, **params: object) -> Row | None:
        cursor = execute(self._connection, sql, params)
        values = cursor.fetchone()
        return None if values is None else dict(zip(_names(cursor), values, strict=True))

    def all(self, sql: str, **params: object) -> list[Row]:
        return _to_rows(execute(self._connection, sql, params))

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        return execute(self._connection, sql, params).fetchall()

    def run(self, sql: str, **params: object) -> int:
        return execute(self._connection, sql, params).rowcount

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        returned: list[Row] = []
        for statement, values in in_parts(sql, rows, "?"):
            returned += _to_rows(execute(self._connection, statement, values))
        return returned

    @property
    def fulltext(self) -> SqliteFulltext:
        return SqliteFulltext(self)


class SqliteSession:
    engine = "sqlite"

    def __init__(
        self,
        path: Path,
        connect: Callable[[Path], sqlite3.Connection] = connect,
        turns: Turns | None = None,
    ) -> None:
        self._connection = connect(path)
        self._turns = turns or Turns()
        self.tx = SqliteTx(self._connection)

    def begin(self) -> None:
        self._turns.begin()
        try:
            execute(self._connection, "begin immediate", {})
        except BaseException:
            self._turns.end()
            raise

    def commit(self) -> None:
        """If it fails, the transaction is still open, and is rolled back."""
        execute(self._connection, "commit", {})
        self._turns.end()

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._turns.end()

    def savepoint(self) -> None:
        self._connection.execute("savepoint job")

    def release(self) -> None:
        self._connection.execute("release job")

    def undo(self) -> None:
        self._connection.execute("rollback to job")
        self._connection.execute("release job")

    def must_run_again(self, error: Exception) -> bool:
        return False

    def is_lock_timeout(self, error: Exception) -> bool:
        return False  # there is one writer

    def wait_at_most(self, milliseconds: int) -> None: ...

    def close(self) -> None:
        self._connection.close()
        self._turns.end()


class IndexSession(SqliteSession):
    """Writes the search index, in the file that is there when a transaction begins."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, sqlite_index.connect)
        self._index, self._identity = path, sqlite_index.identity(path)

    def begin(self) -> None:
        if sqlite_index.identity(self._index) not in (0, self._identity):
            self._connection.close()
            self._connection = sqlite_index.connect(self._index)
            self.tx, self._identity = SqliteTx(self._connection), sqlite_index.identity(self._index)
        super().begin()


class LongReaders:
    """Threads for reads that may take a while, each on its own connection."""

    def __init__(self, path: Path, damage: sqlite_index.SuspectedDamage) -> None:
        self._path = path
        self._index = sqlite_index.path_beside(path)
        self._damage = damage
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._threads = pools.Pool("long-reader", LONG_READERS)

    async def run(self, function: Callable[[Tx], Any], seconds: float) -> Any:
        ends = time.monotonic() + seconds  # waiting for a free thread counts
        return await self._threads.run(self._read, function, ends)

    def _read(self, function: Callable[[Tx], Any], ends: float) -> Any:
        connection = self._connection()
        connection.set_progress_handler(lambda: time.monotonic() > ends, STEPS_BETWEEN_LOOKS)
        try:
            connection.execute("begin")
            return function(SqliteTx(connection))
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE == sqlite3.SQLITE_INTERRUPT:
                raise Overdue from error
            self._damage.check(error)
            raise
        finally:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("rollback")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        index = sqlite_index.identity(self._index)
        if connection is not None and index not in (0, self._own.index):
            self._connections.remove(connection)
            connection.close()
            connection = None
        if connection is None:
            connection = self._own.connection = sqlite_index.attach(connect(self._path), self._path)
            self._own.index = index
            self._connections.append(connection)
        return connection

    def close(self) -> None:
        self._threads.close()
        for connection in self._connections:
            connection.close()


class SqliteDatabase:
    def __init__(self, path: Path, first: sqlite3.Connection) -> None:
        """Make the first connection, with the search index, the reader: opening one takes milliseconds."""
        self._path = path
        self._reader = first
        self._index = sqlite_index.path_beside(path)
        self._attached = sqlite_index.identity(self._index)
        self._damage = sqlite_index.SuspectedDamage()
        self._read_tx = SqliteTx(self._reader)
        self._bells = Bells()
        turns = Turns()
        self._writes = WriteQueue(
            lambda: SqliteSession(path, connect_writer, turns), writers=1, ring=self.ring
        )
        self._index_writes = WriteQueue(lambda: IndexSession(self._index), writers=1, ring=self.ring)
        self._long_readers = LongReaders(path, self._damage)
        self._checkpointer = Checkpointer(partial(connect, path), turns)

    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._reader.execute("begin")
        try:
            return fn(self._read_tx, *args, **kwargs)
        except sqlite3.Error as error:
            self._damage.check(error)
            raise
        finally:
            self._reader.execute("rollback")

    async def read_long(
        self, fn: Callable[Concatenate[Tx, P], T], seconds: float, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._long_readers.run(lambda tx: fn(tx, *args, **kwargs), seconds)
        return result

    def look_up(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(self._read_tx, *args, **kwargs)

    def version(self) -> int:
        """Changes when another connection has committed, also in another process."""
        found: int = execute(self._reader, "pragma data_version", {}).fetchone()[0]
        return found

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._writes.run(lambda tx: fn(tx, *args, **kwargs))
        return result

    async def write_index(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result: T = await self._index_writes.run(lambda tx: fn(tx, *args, **kwargs))
        except sqlite3.Error as error:
            self._damage.check(error)
            raise
        return result

    async def sync_index(self) -> None:
        await pools.ONCE.run(sqlite_index.sync, self._index)

    async def write_together(
        self, fn: Callable[[Tx, list[Item]], list[T]], item: Item, patience_seconds: float = 0.0
    ) -> T:
        result: T = await self._writes.run_together(fn, item, patience_seconds)
        return result

    async def find_damage(self, of_index: bool = False) -> str:
        if of_index:
            return await pools.ONCE.run(sqlite_index.find_damage, self._index)
        return await pools.ONCE.run(find_damage, self._path)

    async def repair_index(self, is_asked: bool = False) -> str:
        wrong = "" if sqlite_index.identity(self._index) else "it is missing"
        if not wrong and self._damage.error is not None:
            check = partial(find_damage, self._path)
            wrong = await pools.ONCE.run(self._damage.find_cause, self._index, check)
        if wrong or is_asked:
            await pools.ONCE.run(sqlite_index.replace, self._index)
        if sqlite_index.identity(self._index) == self._attached:
            return ""
        self._attached = sqlite_index.identity(self._index)
        old, self._reader = self._reader, sqlite_index.attach(connect(self._path), self._path)
        self._read_tx = SqliteTx(self._reader)
        old.close()
        return wrong or "it was replaced"

    def ring(self, *bells: str) -> None:
        self._bells.ring(*bells)

    def listen(self, bell: str) -> BellSubscription:
        return self._bells.listen(bell)

    async def close(self) -> None:
        await self._writes.close()
        await self._index_writes.close()
        await pools.ONCE.run(self._long_readers.close)
        await pools.ONCE.run(self._checkpointer.close)
        self._reader.close()


def find_damage(path: Path) -> str:
    """Return the damage, if any. Checks one table at a time, so that the log can be emptied in between."""
    with closing(connect(path)) as connection:
        try:
            tables = [table for (table,) in connection.execute(_TABLES).fetchall()]
        except sqlite3.DatabaseError as error:
            if not sqlite_index.is_damage(error):
                raise
            return str(error)
        for table in tables:
            if (found := _damage_of(connection, table)) != "ok":
                return f"{table}: {found}"[:DAMAGE_CHARACTERS]
    return ""


def _damage_of(connection: sqlite3.Connection, table: str) -> str:
    try:
        return str(connection.execute(f'pragma quick_check("{table}")').fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & PRIMARY_CODE in DAMAGED:
            return str(error)
        raise


_TABLES = (
    "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%' order by name"
)


def open_sqlite(path: Path, now: int, may_create: bool = True) -> SqliteDatabase:
    if not may_create and not path.is_file():
        raise StorageError(
            f"POSTROOM_DATA_DIR: there is no database in {path.parent.absolute()}. Set it to the data folder"
            " of the server, or create a new one with: postroom serve"
        )
    with ExitStack() as failing:
        first = connect(path)
        failing.callback(first.close)
        _prepare(path, first, now)
        database = SqliteDatabase(path, first)
        failing.pop_all()
    return database


def _prepare(path: Path, first: sqlite3.Connection, now: int) -> None:
    try:
        path.chmod(0o600)
        migrate(SqliteSession(path, lambda _: first), now)
        sqlite_index.attach_prepared(first, path)
    except (OSError, sqlite3.Error, Unavailable) as error:
        reason = error.__cause__ or error
        raise StorageError(f"POSTROOM_DATA_DIR: {path} cannot be used: {reason}.") from error
