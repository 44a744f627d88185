"""Watches connections to PostgreSQL: one without an answer is cut, and an outage is noticed.

A database may hang without closing a connection; callers then get an error within seconds.
"""

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
from psycopg import RawCursor, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from postroom import log
from postroom.errors import Unavailable

# TCP keepalive of the kernel; settings in the URL take precedence.
TCP: dict[str, str | int | None] = {
    "connect_timeout": 3,
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
    "application_name": "postroom",
}
LOOK_SECONDS = 0.1
SUSPICIOUS_SECONDS = 1.0  # after so long without an answer, another connection checks the database
PROBE_SECONDS = 1.5
PROBES_APART_SECONDS = 0.2
# A statement ends by its own limit before this, if the database is there at all.
HUNG_SECONDS = 5.0

Rows = psycopg.Cursor[dict[str, Any]]


def connect(url: str) -> psycopg.Connection[dict[str, Any]]:
    return psycopg.connect(url, autocommit=True, row_factory=dict_row)


def unavailable() -> Unavailable:
    return Unavailable("The database does not answer. Try again.", retry_after=5)


class PostgresConnection:
    """A connection used by one thread, and since when that thread waits for an answer."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection
        # A copy: the library may close its descriptor at any time, and the number may then be another file's.
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self.waiting_since: float | None = None
        self.patience = HUNG_SECONDS

    @property
    def closed(self) -> bool:
        return self._connection.closed

    @property
    def raw(self) -> psycopg.Connection[dict[str, Any]]:
        return self._connection

    def execute(
        self, statement: str, params: Mapping[str, object] | list[object] | None = None, binary: bool = False
    ) -> Rows:
        """Run a statement.

        Values of a list are written as $1, $2, so that one with hundreds is not scanned for them.
        """
        self.waiting_since = time.monotonic()
        try:
            if not isinstance(params, list):
                return self._connection.execute(statement, params, binary=binary)
            cursor = RawCursor(self._connection, row_factory=dict_row)
            cursor.format = pq.Format.BINARY
            return cursor.execute(statement, params)
        finally:
            self.waiting_since = None

    def copy(self, statement: LiteralString, content: bytes) -> None:
        self.waiting_since = time.monotonic()
        try:
            with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write(content)
        except psycopg.Error as error:
            if not self._connection.closed:
                raise
            raise unavailable() from error
        finally:
            self.waiting_since = None

    def has_waited(self, seconds: float) -> bool:
        since = self.waiting_since
        return since is not None and time.monotonic() - since > seconds

    def cut(self) -> None:
        """Cut the connection, from any thread: a thread that waits on it gets an error."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()
        self._socket.close()


class PostgresConnections:
    """Opens connections to one database. During an outage no new one is tried, so that nobody waits."""

    def __init__(self, url: str) -> None:
        self._url = make_conninfo("", **(TCP | conninfo_to_dict(url)))
        self._open: set[PostgresConnection] = set()
        self._lock = threading.Lock()
        self._is_down = False
        self._is_doubtful = False  # a connection could not be opened
        self._seen_down_at = self._seen_up_at = self._probed_at = 0.0
        self._probes: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None

    def open(self, **limits: str) -> PostgresConnection:
        """Open a connection with the limits as its PostgreSQL settings."""
        if self._is_down:
            raise unavailable()
        try:
            raw = connect(self._url)
        except psycopg.Error as error:
            self._is_doubtful = True
            raise unavailable() from error
        connection = PostgresConnection(raw)
        with self._lock:
            self._open.add(connection)
        if limits:
            self.limit(connection, limits)
        return connection

    def close(self, connection: PostgresConnection) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def watch(self) -> None:
        self._watch = asyncio.create_task(self._look_again_and_again())

    async def stop(self) -> None:
        tasks = [*self._probes, *([self._watch] if self._watch else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def limit(self, connection: PostgresConnection, limits: Mapping[str, str]) -> None:
        try:
            calls = ", ".join(f"set_config('{name}', ${n}, false)" for n, name in enumerate(limits, 1))
            connection.execute(f"select {calls}", list(limits.values()))
        except psycopg.OperationalError as error:
            self.close(connection)
            raise unavailable() from error

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for connection in self._waiting(HUNG_SECONDS):
                if connection.has_waited(connection.patience):
                    connection.cut()
            if self._is_down or self._is_doubtful or self._waiting(SUSPICIOUS_SECONDS):
                self._probe_now_and_then()

    def _waiting(self, seconds: float) -> list[PostgresConnection]:
        with self._lock:
            return [connection for connection in self._open if connection.has_waited(seconds)]

    def _probe_now_and_then(self) -> None:
        """Probes run concurrently: one without an answer must not delay the one that succeeds."""
        now = time.monotonic()
        if now - self._probed_at >= PROBES_APART_SECONDS:
            self._probed_at = now
            probe = asyncio.create_task(self._probe())
            self._probes.add(probe)
            probe.add_done_callback(self._probes.discard)

    async def _probe(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                connection = await psycopg.AsyncConnection.connect(self._url)
                await connection.close()
        except (TimeoutError, OSError, psycopg.Error) as error:
            self._record_silence(began, error)
        else:
            self._record_answer(began)

    def _record_silence(self, began: float, error: Exception) -> None:
        if began < self._seen_up_at:
            return  # a later one got through
        if not self._is_down:
            reason = " ".join(str(error).split()) or "no answer"
            log.get().error("the database does not answer", reason=reason[:200])
        self._is_down, self._seen_down_at = True, time.monotonic()
        if isinstance(error, TimeoutError):
            self._cut(self._waiting(SUSPICIOUS_SECONDS))

    def _record_answer(self, began: float) -> None:
        self._seen_up_at = max(self._seen_up_at, began)
        self._is_doubtful = False
        if self._is_down:
            self._is_down = False
            log.get().info("the database answers again")
            self._cut(self._waiting(time.monotonic() - self._seen_down_at))  # their statements were lost

    def _cut(self, connections: list[PostgresConnection]) -> None:
        for connection in connections:
            connection.cut()
