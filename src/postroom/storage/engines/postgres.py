"""PostgreSQL: plain SQL over psycopg. A writer with group commit, and readers.

Each connection to it belongs to one thread, which replaces it when it breaks.
"""

import contextlib
import functools
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg

from postroom.errors import BadRequest, Unavailable
from postroom.processes import pools
from postroom.storage.bells import Bells, BellSubscription
from postroom.storage.database import (
    LOCK_ROWS,
    SKIP_LOCKED,
    Item,
    Overdue,
    Row,
    StorageError,
    Tx,
    Values,
    in_parts,
)
from postroom.storage.engines.postgres_bells import BellRelay
from postroom.storage.engines.postgres_connections import (
    HUNG_SECONDS,
    PostgresConnection,
    PostgresConnections,
    Rows,
    unavailable,
)
from postroom.storage.engines.postgres_fulltext import PostgresFulltext
from postroom.storage.group_commit import WriteQueue
from postroom.storage.migrate import migrate

P = ParamSpec("P")
T = TypeVar("T")

# One per node: concurrent batches of one node would wait for each other's rows. Nodes write concurrently.
WRITERS = 1
READERS = 8
LONG_READERS = 2
LONG_PATIENCE_SECONDS = 60.0  # each long read sets its own limit
UNFINISHED_MOVE = "moving_tables"  # the progress of a move into this database; dropped at its end
MIGRATION_LOCK = 0x706F7374  # any number that all nodes of one database share
# A batch locks rows of many accounts, so it hardly waits for one that another node has locked.
# A node that is stuck in a transaction loses it, and with it the locks.
LIMITS_OF_WRITERS = {
    "lock_timeout": "30ms",
    "statement_timeout": "4s",
    "idle_in_transaction_session_timeout": "1500ms",
}
LIMITS_OF_READERS = {"statement_timeout": "4s", "idle_in_transaction_session_timeout": "10s"}
# Every read has an index: a plan made while a table was small would scan it for a day.
LIMITS_OF_LONG_READERS = {
    "idle_in_transaction_session_timeout": "10s",
    "enable_seqscan": "off",
    "jit": "off",  # a scan that is needed anyway would be compiled first, for 0.4 s
}
RUN_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
TAKEN = psycopg.errors.LockNotAvailable
TOO_BUSY = (*RUN_AGAIN, TAKEN, psycopg.errors.QueryCanceled)

_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")


@functools.lru_cache(maxsize=2048)
def to_psycopg(sql: str) -> str:
    """Replace `:name` by `%(name)s`. SQL comes only from this package's source, never from a request."""
    own = sql.replace(SKIP_LOCKED, "for update skip locked")
    own = own.replace(LOCK_ROWS, "for no key update")  # the same lock as an update: foreign keys do not wait
    return _PARAMETER.sub(r"%(\1)s", own.replace("%", "%%"))


class PostgresTx:
    __slots__ = ("_connection", "rung")

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self.rung: list[str] = []

    def ring(self, *bells: str) -> None:
        self.rung += bells

    def one(self, sql: str, **params: object) -> Row | None:
        return self._execute(to_psycopg(sql), params).fetchone()

    def all(self, sql: str, **params: object) -> list[Row]:
        return list(self._execute(to_psycopg(sql), params).fetchall())

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self._execute(to_psycopg(sql), params).fetchall()]

    def run(self, sql: str, **params: object) -> int:
        return self._execute(to_psycopg(sql), params).rowcount

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        returned: list[Row] = []
        for statement, values in in_parts(sql, rows, "$"):
            cursor = self._execute(statement, values)
            returned += cursor.fetchall() if cursor.description else []
        return returned

    @property
    def fulltext(self) -> PostgresFulltext:
        return PostgresFulltext(self)

    def copy(self, statement: LiteralString, content: bytes) -> None:
        """Run a copy. `content` is all that the statement reads, in its format."""
        self._connection.copy(statement, content)

    def _execute(self, statement: str, params: dict[str, object] | list[object]) -> Rows:
        try:
            return self._connection.execute(statement, params, binary=True)
        except psycopg.Error as error:
            if self._connection.closed:
                raise unavailable() from error
            if not isinstance(error, psycopg.DataError):
                raise
            given = params.values() if isinstance(params, dict) else params
            if any(isinstance(value, str) and "\0" in value for value in given):
                raise BadRequest("A NUL character cannot be stored or searched for.") from error
            raise


class PostgresSession:
    engine = "postgres"

    def __init__(self, url: str, connections: PostgresConnections | None = None, **limits: str) -> None:
        self.connections = connections or PostgresConnections(url)
        self._connection = self.connections.open(**limits)
        self.tx = PostgresTx(self._connection)

    def begin(self) -> None:
        self._control("begin")

    def commit(self) -> None:
        self._control("commit")

    def rollback(self) -> None:
        self._control("rollback")

    def savepoint(self) -> None:
        self._control("savepoint job")

    def release(self) -> None:
        self._control("release job")

    def undo(self) -> None:
        self._control("rollback to job")
        self._control("release job")

    def must_run_again(self, error: Exception) -> bool:
        return isinstance(error, RUN_AGAIN)

    def is_lock_timeout(self, error: Exception) -> bool:
        return isinstance(error, TAKEN)

    def wait_at_most(self, milliseconds: int) -> None:
        self.tx.one("select set_config('lock_timeout', :value, true)", value=f"{milliseconds}ms")

    def limit(self, limits: Mapping[str, str]) -> None:
        self.connections.limit(self._connection, limits)

    def close(self) -> None:
        self.connections.close(self._connection)

    def _control(self, statement: LiteralString) -> None:
        try:
            self._connection.execute(statement)
        except psycopg.Error as error:
            self._connection.close()
            raise unavailable() from error


async def unless_busy(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except TOO_BUSY as error:
        raise Unavailable("The database is too busy. Try again.", retry_after=5) from error


class Readers:
    """Threads that read, each on its own connection."""

    def __init__(
        self, connections: PostgresConnections, threads: int, name: str, patience: float, **limits: str
    ) -> None:
        self._connections = connections
        self._limits = limits
        self._patience = patience
        self._own = threading.local()
        self._opened: set[PostgresConnection] = set()
        self._threads = pools.Pool(name, threads)

    async def run(self, function: Callable[[Tx], Any]) -> Any:
        return await unless_busy(self._threads.run(self._read, function))

    def _read(self, function: Callable[[Tx], Any]) -> Any:
        """Run a read. A connection that broke while idle is worth one retry: reading twice is harmless."""
        connection = self._connection()
        try:
            return function(PostgresTx(connection))
        except Unavailable:
            if not connection.closed:
                raise
            return function(PostgresTx(self._connection()))

    async def run_in_snapshot(self, function: Callable[[Tx], Any]) -> Any:
        return await self.run(lambda tx: _in_snapshot(tx, function))

    async def run_until(self, function: Callable[[Tx], Any], ends: float) -> Any:
        return await self.run(lambda tx: _in_snapshot(tx, lambda tx: _until(tx, function, ends)))

    def _connection(self) -> PostgresConnection:
        connection: PostgresConnection | None = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            if connection is not None:
                self._close(connection)
            connection = self._own.connection = self._connections.open(**self._limits)
            connection.patience = self._patience
            self._opened.add(connection)
        return connection

    def _close(self, connection: PostgresConnection) -> None:
        self._opened.discard(connection)
        self._connections.close(connection)

    def close(self) -> None:
        self._threads.close()
        for connection in [*self._opened]:
            self._close(connection)


def _in_snapshot(tx: Tx, function: Callable[[Tx], Any]) -> Any:
    """Run a read whose statements all see the same snapshot, as on SQLite."""
    tx.run("begin isolation level repeatable read read only")
    try:
        return function(tx)
    finally:
        with contextlib.suppress(psycopg.Error, Unavailable):  # a broken connection has nothing to end
            tx.run("rollback")


def _until(tx: Tx, function: Callable[[Tx], Any], ends: float) -> Any:
    left = int((ends - time.monotonic()) * 1000)
    if left <= 0:
        raise Overdue
    tx.one("select set_config('statement_timeout', :value, true)", value=f"{left}ms")
    try:
        return function(tx)
    except psycopg.errors.QueryCanceled as error:
        raise Overdue from error


class PostgresDatabase:
    def __init__(self, url: str, first: PostgresSession) -> None:
        """Make the first session the writer: each session costs a process of PostgreSQL."""
        self._bells = Bells()
        self._url = url
        self._connections = first.connections
        self._connections.watch()
        self._first = [first]
        self._relay = BellRelay(self._connections, self._bells)
        self._readers = Readers(self._connections, READERS, "reader", HUNG_SECONDS, **LIMITS_OF_READERS)
        self._long_readers = Readers(
            self._connections, LONG_READERS, "long-reader", LONG_PATIENCE_SECONDS, **LIMITS_OF_LONG_READERS
        )
        self._writes = WriteQueue(self._open_session, WRITERS, self.ring)

    def _open_session(self) -> PostgresSession:
        with contextlib.suppress(IndexError):
            return self._first.pop()
        return PostgresSession(self._url, self._connections, **LIMITS_OF_WRITERS)

    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._readers.run_in_snapshot(lambda tx: fn(tx, *args, **kwargs))
        return result

    async def read_long(
        self, fn: Callable[Concatenate[Tx, P], T], seconds: float, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        ends = time.monotonic() + seconds  # waiting for a free thread counts
        result: T = await self._long_readers.run_until(lambda tx: fn(tx, *args, **kwargs), ends)
        return result

    def look_up(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return self._readers.run(lambda tx: fn(tx, *args, **kwargs))

    def version(self) -> None:
        """Return None: other nodes write too, and asking costs as much as reading."""
        return None

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await unless_busy(self._writes.run(lambda tx: fn(tx, *args, **kwargs)))
        return result

    async def write_index(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(fn, *args, **kwargs)

    async def sync_index(self) -> None: ...

    async def write_together(
        self, fn: Callable[[Tx, list[Item]], list[T]], item: Item, patience_seconds: float = 0.0
    ) -> T:
        result: T = await unless_busy(self._writes.run_together(fn, item, patience_seconds))
        return result

    async def repair_index(self, is_asked: bool = False) -> str:
        return ""

    async def find_damage(self, of_index: bool = False) -> str:
        return ""

    def ring(self, *bells: str) -> None:
        self._bells.ring(*bells)
        self._relay.send(*bells)

    def listen(self, bell: str) -> BellSubscription:
        return self._bells.listen(bell)

    async def close(self) -> None:
        await self._writes.close()
        for unused in self._first:
            unused.close()
        await pools.ONCE.run(self._readers.close)
        await pools.ONCE.run(self._long_readers.close)
        await self._relay.close()
        await self._connections.stop()


async def open_postgres(url: str, now: int, may_create: bool = True) -> PostgresDatabase:
    return PostgresDatabase(url, await pools.ONCE.run(_migrate, url, now, may_create))


def _migrate(url: str, now: int, may_create: bool) -> PostgresSession:
    """Returns the session, for writing."""
    try:
        session = PostgresSession(url)
    except (Unavailable, psycopg.Error) as error:
        raise StorageError(
            f"POSTROOM_DATABASE_URL: PostgreSQL cannot be reached: {in_one_line(error.__cause__ or error)}"
        ) from error
    try:
        require_unicode(session.tx)
        _require_moved(session.tx)
        if not may_create:
            _require_tables(session.tx)
        session.tx.run("select pg_advisory_lock(:lock)", lock=MIGRATION_LOCK)  # closing also releases it
        migrate(session, now)
        session.tx.run("select pg_advisory_unlock(:lock)", lock=MIGRATION_LOCK)
        session.limit(LIMITS_OF_WRITERS)
    except BaseException as error:
        session.close()
        if not isinstance(error, psycopg.Error):
            raise
        raise StorageError(
            f"POSTROOM_DATABASE_URL: the database cannot be used: {in_one_line(error)}"
        ) from error
    return session


def require_unicode(tx: Tx) -> None:
    row = tx.one("select current_setting('server_encoding') as name")
    if row is None or row["name"] != "UTF8":
        found = "unknown" if row is None else row["name"]
        raise StorageError(
            f"POSTROOM_DATABASE_URL: the database has the encoding {found}, and mail needs UTF8."
            " Create one with: create database postroom encoding 'UTF8' template template0"
        )


def _require_moved(tx: Tx) -> None:
    """Refuse an unfinished move: a server must not accept mail before it is complete."""
    row = tx.one("select to_regclass(:name) is not null as is_there", name=UNFINISHED_MOVE)
    if row is not None and row["is_there"]:
        raise StorageError(
            "POSTROOM_DATABASE_URL: a move into this database is not finished yet."
            " Continue with the same command: postroom move --to …"
        )


def _require_tables(tx: Tx) -> None:
    row = tx.one("select to_regclass('schema_versions') is not null as is_there")
    if row is None or not row["is_there"]:
        raise StorageError(
            "POSTROOM_DATABASE_URL: there are no tables of Postroom in this database. Set it to the database"
            " of the server, or create the tables with: postroom serve"
        )


def in_one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
