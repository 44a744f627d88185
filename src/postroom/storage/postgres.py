"""PostgreSQL: plain SQL over psycopg. A writer with group commit, readers, and bells over LISTEN/NOTIFY.

Each connection belongs to one thread, which replaces it when it breaks.
"""

import asyncio
import contextlib
import functools
import queue
import re
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg
from psycopg.rows import dict_row

from postroom import log, pools
from postroom.errors import BadRequest, Unavailable
from postroom.storage.bells import BellEar, Bells
from postroom.storage.database import Item, Overdue, Row, StorageError, Tx, Values, in_parts
from postroom.storage.group_commit import WriteQueue
from postroom.storage.migrate import migrate
from postroom.storage.postgres_words import PostgresWords

P = ParamSpec("P")
T = TypeVar("T")

# One a node: side by side, batches of one node would wait for each other's rows. Nodes write side by side.
WRITERS = 1
READERS = 8
LONG_READERS = 2
CONNECT_SECONDS = 5
WAIT_FOR_EVER = 0
# Batches that lock the same rows in another order would wait a second for PostgreSQL to see the deadlock; so
# one that waits for a lock gives up soon, and its functions run one by one.
BATCH_LOCK_MILLISECONDS = 300
MIGRATION_LOCK = 0x706F7374  # any number that all nodes of one database share
BELL_CHANNEL = "postroom_bells"
RECONNECT_SECONDS = 1.0
RUN_AGAIN = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)

_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")


@functools.lru_cache(maxsize=2048)
def to_psycopg(sql: str) -> str:
    """`:name` becomes `%(name)s`; SQL comes from this package's source alone, never from a request."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


def connect(url: str) -> psycopg.Connection[dict[str, Any]]:
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=CONNECT_SECONDS,
            application_name="postroom",
        )
    except psycopg.Error as error:
        raise Unavailable("The database does not answer. Try again.", retry_after=5) from error


class PostgresTx:
    __slots__ = ("_connection",)

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection

    def one(self, sql: str, **params: object) -> Row | None:
        return self._execute(to_psycopg(sql), params).fetchone()

    def all(self, sql: str, **params: object) -> list[Row]:
        return list(self._execute(to_psycopg(sql), params).fetchall())

    def run(self, sql: str, **params: object) -> int:
        return self._execute(to_psycopg(sql), params).rowcount

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        returned: list[Row] = []
        for statement, values in in_parts(sql.replace("%", "%%"), rows, "%s"):
            cursor = self._execute(statement, values)
            returned += cursor.fetchall() if cursor.description else []
        return returned

    @property
    def words(self) -> PostgresWords:
        return PostgresWords(self)

    def _execute(
        self, statement: str, params: dict[str, object] | list[object]
    ) -> psycopg.Cursor[dict[str, Any]]:
        try:
            return self._connection.execute(statement, params, binary=True)
        except psycopg.OperationalError as error:
            if self._connection.closed:
                raise Unavailable("The database does not answer. Try again.", retry_after=5) from error
            raise
        except psycopg.DataError as error:
            given = params.values() if isinstance(params, dict) else params
            if any(isinstance(value, str) and "\0" in value for value in given):
                raise BadRequest("A NUL character cannot be stored or looked for.") from error
            raise


class PostgresSession:
    engine = "postgres"

    def __init__(self, url: str, lock_milliseconds: int = WAIT_FOR_EVER) -> None:
        self._connection = connect(url)
        self.tx: Tx = PostgresTx(self._connection)
        self.tx.one("select set_config('lock_timeout', :value, false)", value=f"{lock_milliseconds}ms")

    def begin(self) -> None:
        self._frame("begin")

    def commit(self) -> None:
        self._frame("commit")

    def rollback(self) -> None:
        self._frame("rollback")

    def savepoint(self) -> None:
        self._frame("savepoint job")

    def release(self) -> None:
        self._frame("release job")

    def undo(self) -> None:
        self._frame("rollback to job")
        self._frame("release job")

    def must_run_again(self, error: Exception) -> bool:
        return isinstance(error, RUN_AGAIN)

    def close(self) -> None:
        self._connection.close()

    def _frame(self, statement: LiteralString) -> None:
        try:
            self._connection.execute(statement)
        except psycopg.OperationalError as error:
            self._connection.close()
            raise Unavailable("The database does not answer. Try again.", retry_after=5) from error


class Readers:
    """Threads that read, each on its own connection."""

    def __init__(self, url: str, threads: int, name: str) -> None:
        self._url = url
        self._own = threading.local()
        self._connections: list[psycopg.Connection[dict[str, Any]]] = []
        self._threads = pools.Pool(name, threads)

    async def run(self, function: Callable[[Tx], Any]) -> Any:
        return await self._threads.run(self._read, function)

    def _read(self, function: Callable[[Tx], Any]) -> Any:
        """A connection that broke while it was idle is worth one new try: reading twice harms nobody."""
        try:
            return function(PostgresTx(self._connection()))
        except Unavailable:
            return function(PostgresTx(self._connection()))

    async def run_in_snapshot(self, function: Callable[[Tx], Any]) -> Any:
        return await self.run(lambda tx: _in_snapshot(tx, function))

    async def run_until(self, function: Callable[[Tx], Any], ends: float) -> Any:
        return await self.run(lambda tx: _in_snapshot(tx, lambda tx: _until(tx, function, ends)))

    def _connection(self) -> psycopg.Connection[dict[str, Any]]:
        connection: psycopg.Connection[dict[str, Any]] | None = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            connection = self._own.connection = connect(self._url)
            self._connections = [kept for kept in self._connections if not kept.closed] + [connection]
        return connection

    def close(self) -> None:
        self._threads.close()
        for connection in self._connections:
            connection.close()


def _in_snapshot(tx: Tx, function: Callable[[Tx], Any]) -> Any:
    """All statements of a read see the same moment, as on SQLite."""
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


class BellRelay:
    """Carries rings between processes. Rings that wait together go as one notification."""

    def __init__(self, url: str, bells: Bells) -> None:
        self._url = url
        self._bells = bells
        self._loop = asyncio.get_running_loop()
        self._outgoing: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(self._send,), name="bell-out", daemon=True),
            threading.Thread(target=self._repeat, args=(self._hear,), name="bell-in", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, *bells: str) -> None:
        for bell in bells:
            self._outgoing.put(bell)

    async def close(self) -> None:
        self._stopping.set()
        self._outgoing.put("closing")  # wakes both threads
        for thread in self._threads:
            await pools.ONCE.run(thread.join)

    def _repeat(self, work: Callable[[psycopg.Connection[dict[str, Any]]], None]) -> None:
        while not self._stopping.is_set():
            try:
                with connect(self._url) as connection:
                    work(connection)
            except (psycopg.Error, Unavailable):
                self._stopping.wait(RECONNECT_SECONDS)
            except Exception:
                log.get().exception("a carrier of bells failed")
                self._stopping.wait(RECONNECT_SECONDS)

    def _send(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        while not self._stopping.is_set():
            names = {self._outgoing.get()}
            while not self._outgoing.empty():
                names.add(self._outgoing.get())
            try:
                connection.execute("select pg_notify(%s, %s)", (BELL_CHANNEL, " ".join(sorted(names))))
            except psycopg.Error:
                self.send(*names)  # the next connection carries them
                raise

    def _hear(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        connection.execute(f"listen {BELL_CHANNEL}")
        self._in_loop(self._bells.ring_all)  # what rang while nobody listened
        while not self._stopping.is_set():
            for notice in connection.notifies(timeout=0.5, stop_after=1):  # else it stays to the last moment
                self._in_loop(functools.partial(self._bells.ring, *notice.payload.split()))

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(call)


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self._bells = Bells()
        self._relay = BellRelay(url, self._bells)
        self._readers = Readers(url, READERS, "reader")
        self._long_readers = Readers(url, LONG_READERS, "long-reader")
        self._writes = WriteQueue(lambda: PostgresSession(url, BATCH_LOCK_MILLISECONDS), writers=WRITERS)

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

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await _unless_busy(self._writes.run(lambda tx: fn(tx, *args, **kwargs)))
        return result

    async def write_together(self, fn: Callable[[Tx, list[Item]], list[T]], item: Item) -> T:
        result: T = await _unless_busy(self._writes.run_together(fn, item))
        return result

    def ring(self, *bells: str) -> None:
        self._bells.ring(*bells)
        self._relay.send(*bells)

    def listen(self, bell: str) -> BellEar:
        return self._bells.listen(bell)

    async def close(self) -> None:
        await self._writes.close()
        await pools.ONCE.run(self._readers.close)
        await pools.ONCE.run(self._long_readers.close)
        await self._relay.close()


async def _unless_busy(writing: Awaitable[Any]) -> Any:
    try:
        return await writing
    except RUN_AGAIN as error:
        raise Unavailable("The database is too busy. Try again.", retry_after=5) from error


async def open_postgres(url: str, now: int) -> PostgresDatabase:
    await pools.ONCE.run(_migrate, url, now)
    return PostgresDatabase(url)


def _migrate(url: str, now: int) -> None:
    try:
        session = PostgresSession(url)
    except Unavailable as error:
        raise StorageError(
            f"POSTROOM_DATABASE_URL: PostgreSQL cannot be reached: {_in_one_line(error.__cause__)}"
        ) from error
    try:
        _require_unicode(session.tx)
        session.tx.run("select pg_advisory_lock(:lock)", lock=MIGRATION_LOCK)  # closing lets go of it
        migrate(session, now)
    except psycopg.Error as error:
        raise StorageError(
            f"POSTROOM_DATABASE_URL: the database cannot be used: {_in_one_line(error)}"
        ) from error
    finally:
        session.close()


def _require_unicode(tx: Tx) -> None:
    row = tx.one("select current_setting('server_encoding') as name")
    if row is None or row["name"] != "UTF8":
        found = "unknown" if row is None else row["name"]
        raise StorageError(
            f"POSTROOM_DATABASE_URL: the database has the encoding {found}, and mail needs UTF8."
            " Make one with: create database postroom encoding 'UTF8' template template0"
        )


def _in_one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
