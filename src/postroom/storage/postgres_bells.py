"""Bells between nodes, over LISTEN/NOTIFY: one line that sends and one that hears, each of its own."""

import asyncio
import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from postroom import log, pools
from postroom.errors import Unavailable
from postroom.storage.bells import Bells
from postroom.storage.postgres_lines import PostgresLine, PostgresLines

BELL_CHANNEL = "postroom_bells"
RECONNECT_SECONDS = 0.25
HEAR_SECONDS = 0.5
STILL_THERE_SECONDS = 2.0  # a line that is only listened on is asked so often whether it still is one
# PostgreSQL takes payloads below 8,000 bytes.
PAYLOAD_BYTES = 7_900
# More than this waits only when nobody can be told. Whoever connects anew looks at everything anyway.
MOST_WAITING = 100_000


class BellRelay:
    """Carries rings between processes. Those that wait together go together, in as few parts as hold them."""

    def __init__(self, lines: PostgresLines, bells: Bells) -> None:
        self._lines = lines
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
        if self._outgoing.qsize() > MOST_WAITING:
            self._drop_all()
        for bell in bells:
            self._outgoing.put(bell)

    async def close(self) -> None:
        self._stopping.set()
        self._outgoing.put("closing")  # wakes both threads
        for thread in self._threads:
            await pools.ONCE.run(thread.join)

    def _drop_all(self) -> None:
        """The rows are the truth: a ring that is lost costs a second."""
        log.get().error("bells were dropped: the database takes none", bells=len(self._take_all()))

    def _take_all(self) -> set[str]:
        names: set[str] = set()
        while not self._outgoing.empty():
            names.add(self._outgoing.get())
        return names

    def _repeat(self, work: Callable[[PostgresLine], None]) -> None:
        while not self._stopping.is_set():
            try:
                line = self._lines.open()
                try:
                    work(line)
                finally:
                    self._lines.close(line)
            except (psycopg.OperationalError, Unavailable):
                self._stopping.wait(RECONNECT_SECONDS)
            except Exception:
                log.get().exception("a carrier of bells failed")
                self._stopping.wait(RECONNECT_SECONDS)

    def _send(self, line: PostgresLine) -> None:
        while not self._stopping.is_set():
            names = {self._outgoing.get()} | self._take_all()
            payloads = list(in_payloads(sorted(names)))
            try:
                line.execute(
                    "select pg_notify(%s, payload) from unnest(%s::text[]) as payload",
                    [BELL_CHANNEL, payloads],
                )
            except psycopg.OperationalError:
                self.send(*names)  # the next line carries them
                raise

    def _hear(self, line: PostgresLine) -> None:
        line.execute(f"listen {BELL_CHANNEL}")
        self._in_loop(self._bells.ring_all)  # what rang while nobody listened
        asked_at = time.monotonic()
        while not self._stopping.is_set():
            # One at a time: else it stays to the last moment.
            for notice in line.connection.notifies(timeout=HEAR_SECONDS, stop_after=1):
                self._in_loop(functools.partial(self._bells.ring, *notice.payload.split()))
            if time.monotonic() - asked_at > STILL_THERE_SECONDS:
                line.execute("select 1")
                asked_at = time.monotonic()

    def _in_loop(self, call: Callable[[], None]) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(call)


def in_payloads(names: Sequence[str]) -> Iterator[str]:
    """Names with spaces between them, in parts that a notification holds."""
    part: list[str] = []
    size = 0
    for name in names:
        length = len(name.encode()) + 1
        if part and size + length > PAYLOAD_BYTES:
            yield " ".join(part)
            part, size = [], 0
        part.append(name)
        size += length
    if part:
        yield " ".join(part)
