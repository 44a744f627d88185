"""A thousand mailboxes elsewhere on one node: memory, processor time at rest, and a mail for each at once."""

import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench import consumption
from bench.processes import (
    CHECKOUT,
    listening,
    resident_bytes,
    running_postroom,
    scratch_folder,
    wait_until_ready,
)
from bench.results import Result
from bench.seeding import seed
from postroom import config, ids
from postroom.clock import SystemClock
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import CONNECTING, IMAP, Connection
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests.ports import free_port

MAILBOXES = 1_000
INBOXES_OF_AN_ACCOUNT = 100
IDLE_SECONDS = 60.0
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 600.0
LIVE = "select count(*) from connections where state = 'live'"
WITH_MAIL = "select count(*) from connections where last_mail_at is not null"
SETTINGS = {"POSTROOM_OUTBOUND": "capture"}


def measure(size: int = MAILBOXES, idle_seconds: float = IDLE_SECONDS) -> list[Result]:
    with scratch_folder() as folder, running_mailboxes() as (peer, port):
        seed(folder, -(-size // INBOXES_OF_AN_ACCOUNT), INBOXES_OF_AN_ACCOUNT)
        with running_postroom(folder, **SETTINGS) as server:
            wait_until_ready(server.port)
            without = _memory(server.pid)
        uvloop.run(_connect(folder, size, port))
        began = time.perf_counter()
        with running_postroom(folder, **SETTINGS) as server:
            wait_until_ready(server.port)
            _wait_until(folder, LIVE, size)
            live_seconds = time.perf_counter() - began
            consumption.settle(server.pid)
            before = consumption.of_family(server.pid)
            time.sleep(idle_seconds)
            idle, idle_seconds = consumption.of_family(server.pid) - before, idle_seconds or 1.0
            memory = _memory(server.pid) - without
            before, began = consumption.of_family(server.pid), time.perf_counter()
            assert peer.stdin is not None
            peer.stdin.write(b"mail\n")
            peer.stdin.flush()
            _wait_until(folder, WITH_MAIL, size)
            mail_seconds = time.perf_counter() - began
            consumption.settle(server.pid)
            used = consumption.of_family(server.pid) - before
    return [
        Result(f"{size} mailboxes: memory of each", memory / size / 1000, "kB"),
        Result(f"{size} mailboxes: from the start until all are read", live_seconds, "s"),
        Result(
            f"{size} mailboxes: processor, nothing comes",
            idle.cpu_seconds / idle_seconds * 100,
            "% of a core",
        ),
        Result(f"{size} mailboxes: disk, nothing comes", idle.written_bytes / idle_seconds / 1000, "kB/s"),
        Result(f"{size} mailboxes: a mail for each at once, until all are here", mail_seconds, "s"),
        Result(f"{size} mailboxes: processor, of such a mail", used.cpu_seconds / size * 1000, "ms"),
    ]


@contextlib.contextmanager
def running_mailboxes() -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    port = free_port()
    command = [sys.executable, "-m", "bench.peers.imap_mailboxes", str(port)]
    peer = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=CHECKOUT)
    try:
        listening(peer, port)
        yield peer, port
    finally:
        peer.terminate()
        peer.communicate(timeout=60)


async def _connect(folder: Path, size: int, port: int) -> None:
    now = SystemClock().now()
    db = await open_database(config.load({"POSTROOM_DATA_DIR": str(folder)}), now)
    await db.write(_add_connections, size, port, now)
    await db.close()


def _add_connections(tx: Tx, size: int, port: int, now: int) -> None:
    rows = tx.all("select id, account_id from inboxes order by id limit :size", size=size)
    for number, row in enumerate(rows):
        address = f"you-{number}@example.com"
        settings = {"host": "127.0.0.1", "port": port, "username": address, "address": address}
        connection = Connection(
            id=ids.new(ids.CONNECTION, now),
            account_id=row["account_id"],
            pod_id=None,
            inbox_id=row["id"],
            kind=IMAP,
            provider="",
            state=CONNECTING,
            last_error=None,
            last_mail_at=None,
            uid_validity=None,
            last_uid=0,
            created_at=now,
            settings=settings | {"folder": "INBOX", "since": "2020-01-01", "after": "leave"},
            hidden={"password": "a-password"},
        )
        connections.add(tx, connection)


def _memory(pid: int) -> int:
    return sum(map(resident_bytes, consumption.family(pid)))


def _wait_until(folder: Path, counted: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.closing(sqlite3.connect(f"file:{folder / 'postroom.db'}?mode=ro", uri=True)) as look:
        while look.execute(counted).fetchone()[0] < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not all of {count} in time: {counted}")
            time.sleep(LOOK_SECONDS)
