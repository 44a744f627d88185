"""Bells between nodes, over LISTEN/NOTIFY: one connection that sends and one that listens."""

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterator

import psycopg

from postroom import log
from postroom.errors import Unavailable
from postroom.processes import pools
from postroom.storage.bells import Bells
from postroom.storage.engines.postgres_connections import PostgresConnection, PostgresConnections

BELL_CHANNEL = "postroom_bells"
RECONNECT_SECONDS = 0.25
HEAR_SECONDS = 0.5
STILL_THERE_SECONDS = 2.0  # so often a listening connection is asked whether it still works
# PostgreSQL takes payloads below 8,000 bytes.
PAYLOAD_BYTES = 7_900
# As one text: an array of so many would be quoted on one side and read on the other.
NOTIFY = "select pg_notify(%s, payload) from unnest(string_to_array(%s, E'\\n')) as payload"
# More than this waits only when nobody can be told. Whoever connects anew looks at everything anyway.
MOST_WAITING = 100_000


class BellRelay:
    """Carries rings between processes. Those that wait together go together, in as few parts as hold them."""

    def __init__(self, connections: PostgresConnections, bells: Bells) -> None:
        self._connections = connections
        self._bells = bells
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, None] = {}  # names in their order, each once
        self._lock = threading.Lock()
        self._something_waits = threading.Event()
        self._own_backend: int | None = None  # by which we send: what it says was rung here before
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._send_all, name="bell-out", daemon=True),
            threading.Thread(target=self._repeat, args=(self._hear,), name="bell-in", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, *bells: str) -> None:
        with self._lock:
            self._waiting.update(dict.fromkeys(bells))
            is_too_much = len(self._waiting) > MOST_WAITING
        if is_too_much:
            self._drop_all()
        self._something_waits.set()

    async def close(self) -> None:
        self._stopping.set()
        self.send("closing")  # wakes both threads
        for thread in self._threads:
            await pools.ONCE.run(thread.join)

    def _drop_all(self) -> None:
        """The rows are the truth: a ring that is lost costs a second."""
        log.get().error("bells were dropped: the database does not answer", bells=len(self._take_all()))

    def _take_all(self) -> dict[str, None]:
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return taken

    def _send_all(self) -> None:
        """Connects with the first ring: a command may come to its end without one."""
        self._something_waits.wait()
        self._repeat(self._send)

    def _repeat(self, work: Callable[[PostgresConnection], None]) -> None:
        while not self._stopping.is_set():
            try:
                connection = self._connections.open()
                try:
                    work(connection)
                finally:
                    self._connections.close(connection)
            except (psycopg.OperationalError, Unavailable):
                self._stopping.wait(RECONNECT_SECONDS)
            except Exception:
                log.get().exception("a connection for bells failed")
                self._stopping.wait(RECONNECT_SECONDS)

    def _send(self, connection: PostgresConnection) -> None:
        self._own_backend = connection.raw.info.backend_pid
        while not self._stopping.is_set():
            self._something_waits.wait()
            self._something_waits.clear()
            if not (names := self._take_all()):
                continue
            try:
                connection.execute(NOTIFY, [BELL_CHANNEL, "\n".join(in_payloads(" ".join(names)))])
            except psycopg.OperationalError:
                self._own_backend = None
                self.send(*names)  # the next connection carries them
                raise

    def _hear(self, connection: PostgresConnection) -> None:
        connection.execute(f"listen {BELL_CHANNEL}")
        self._in_loop(self._bells.ring_all)  # what rang while nobody listened
        asked_at = time.monotonic()
        while not self._stopping.is_set():
            # At least one, and what came with it: else it stays to the last moment.
            notices = list(connection.raw.notifies(timeout=HEAR_SECONDS, stop_after=1))
            others = [notice.payload for notice in notices if notice.pid != self._own_backend]
            if others:
                self._in_loop(functools.partial(self._bells.ring, *" ".join(others).split()))
            if time.monotonic() - asked_at > STILL_THERE_SECONDS:
                connection.execute("select 1")
                asked_at = time.monotonic()

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(call)


def in_payloads(names: str) -> Iterator[str]:
    """Names with spaces between them, in parts that a notification holds."""
    said, start = names.encode(), 0
    while len(said) - start > PAYLOAD_BYTES:
        end = said.rindex(b" ", start, start + PAYLOAD_BYTES + 1)
        yield said[start:end].decode()
        start = end + 1
    yield said[start:].decode()
