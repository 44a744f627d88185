"""Bells between nodes, over LISTEN/NOTIFY: one connection that listens and notifies."""

import asyncio
import contextlib
import functools
import selectors
import socket
import threading
from collections.abc import Callable, Iterator

import psycopg
from psycopg.pq import PGnotify
from psycopg.pq.abc import PGconn

from postroom import log
from postroom.errors import Unavailable
from postroom.processes import pools
from postroom.storage.bells import Bells
from postroom.storage.engines.postgres_connections import PostgresConnection, PostgresConnections

BELL_CHANNEL = "postroom_bells"
RECONNECT_SECONDS = 0.25
STILL_THERE_SECONDS = 2.0  # after so long without a ring the connection is checked
# PostgreSQL takes payloads below 8,000 bytes.
PAYLOAD_BYTES = 7_900
# One text: an array of so many would be quoted on one side and parsed on the other.
NOTIFY = "select pg_notify($1, payload) from unnest(string_to_array($2, E'\\n')) as payload"
# More than this waits only during an outage. A node that reconnects reads everything anyway.
MOST_WAITING = 100_000


class BellRelay:
    """Carries rings between processes. Those that wait together are sent in as few payloads as possible."""

    def __init__(self, connections: PostgresConnections, bells: Bells) -> None:
        self._connections = connections
        self._bells = bells
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, None] = {}  # names in their order, each once
        self._lock = threading.Lock()
        self._heard: list[PGnotify] = []
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)  # one byte wakes as well as many
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="bells", daemon=True)
        self._thread.start()

    def send(self, *bells: str) -> None:
        with self._lock:
            is_first = not self._waiting
            self._waiting.update(dict.fromkeys(bells))
            is_too_much = len(self._waiting) > MOST_WAITING
        if is_too_much:
            self._drop_all()
        if is_first:
            self._wake()

    async def close(self) -> None:
        self._stopping.set()
        self._wake()
        await pools.ONCE.run(self._thread.join)
        self._waker.close()
        self._woken.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._waker.send(b"\0")

    def _drop_all(self) -> None:
        """Drop all rings. The rows are the truth: a lost one costs a second."""
        log.get().error("bells were dropped: the database does not answer", bells=len(self._take_all()))

    def _take_all(self) -> dict[str, None]:
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return taken

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            try:
                connection = self._connections.open()
                try:
                    self._carry(connection)
                finally:
                    self._connections.close(connection)
            except (psycopg.OperationalError, Unavailable):
                self._stopping.wait(RECONNECT_SECONDS)
            except Exception:
                log.get().exception("a connection for bells failed")
                self._stopping.wait(RECONNECT_SECONDS)

    def _carry(self, connection: PostgresConnection) -> None:
        raw, self._heard = connection.raw.pgconn, []
        raw.notify_handler = self._heard.append  # for notifications that come with an answer
        connection.execute(f"listen {BELL_CHANNEL}")
        self._in_loop(self._bells.ring_all)  # rings missed while not listening
        with selectors.DefaultSelector() as either:
            either.register(raw.socket, selectors.EVENT_READ)
            either.register(self._woken, selectors.EVENT_READ)
            while not self._stopping.is_set():
                ready = [key.fileobj for key, _ in either.select(STILL_THERE_SECONDS)]
                if not ready:
                    connection.execute("select 1")
                if self._woken in ready:
                    self._woken.recv(64)
                self._send_waiting(connection)
                self._ring_heard(raw)

    def _send_waiting(self, connection: PostgresConnection) -> None:
        if not (names := self._take_all()):
            return
        try:
            connection.execute(NOTIFY, [BELL_CHANNEL, "\n".join(in_payloads(" ".join(names)))])
        except psycopg.OperationalError:
            self.send(*names)  # the next connection carries them
            raise

    def _ring_heard(self, raw: PGconn) -> None:
        raw.consume_input()
        while notice := raw.notifies():
            self._heard.append(notice)
        # Notifications of this connection were rung here before.
        others = [notice.extra for notice in self._heard if notice.be_pid != raw.backend_pid]
        self._heard.clear()
        if others:
            self._in_loop(functools.partial(self._bells.ring, *b" ".join(others).decode().split()))

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(call)


def in_payloads(names: str) -> Iterator[str]:
    """Names separated by spaces, in parts that fit into a notification."""
    said, start = names.encode(), 0
    while len(said) - start > PAYLOAD_BYTES:
        end = said.rindex(b" ", start, start + PAYLOAD_BYTES + 1)
        yield said[start:end].decode()
        start = end + 1
    yield said[start:].decode()
