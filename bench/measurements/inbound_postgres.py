"""What a mail of 5 kB costs with PostgreSQL: processor time of both, and bytes of tables and log."""

import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import consumption
from bench.measurements.inbound import RECIPIENT, SMALL_BYTES
from bench.processes import Server, running_postroom, scratch_folder
from bench.results import Result, at_most
from bench.seeding import seed
from bench.smtp_load import SmtpLoad, run_smtp_load
from tests.postgres_engine import running_postgres


@dataclass(frozen=True, slots=True)
class PostgresLoad:
    connections: int
    warm_up: int
    mails: int


Connection = psycopg.Connection[tuple[object, ...]]

LOOKS_APART_SECONDS = 0.5
LOAD = PostgresLoad(connections=20, warm_up=500, mails=4_000)


def measure(load: PostgresLoad = LOAD) -> list[Result]:
    with running_postgres(fsync=True) as url, scratch_folder() as folder:
        return measure_at(url, folder, load)


def measure_at(url: str, folder: Path, load: PostgresLoad) -> list[Result]:
    seed(folder / "data", account_count=1, inboxes_each=1, database_url=url)
    with (
        running_postroom(folder / "data", POSTROOM_DATABASE_URL=url) as server,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        _take(server, connection, load.connections, load.warm_up, "warm-up")
        pids = [server.pid, postmaster(connection)]
        before = [consumption.of_family(pid) for pid in pids]
        size, log = stored_bytes(connection)
        rate = _take(server, connection, load.connections, load.mails, "run")
        after = [consumption.of_family(pid) for pid in pids]
        size_after, log_after = stored_bytes(connection)
    cpu = sum((use - earlier).cpu_seconds for use, earlier in zip(after, before, strict=True))
    written = size_after - size + log_after - log
    return [
        Result("PostgreSQL: inbound mails of 5 kB", rate, "mails/s"),
        Result("PostgreSQL: processor time of a mail", cpu * 1000 / load.mails, "ms", at_most(2.8)),
        Result("PostgreSQL: tables of a mail", (size_after - size) / 1000 / load.mails, "kB"),
        Result("PostgreSQL: tables and log of a mail", written / 1000 / load.mails, "kB", at_most(28)),
    ]


def _take(server: Server, connection: Connection, connections: int, count: int, run: str) -> float:
    """The index rests for so long between its batches that the server may look as if it were done."""
    report = run_smtp_load(SmtpLoad(server.smtp_port, RECIPIENT, connections, count, SMALL_BYTES, run=run))
    while connection.execute("select 1 from search_changes limit 1").fetchone() is not None:
        time.sleep(LOOKS_APART_SECONDS)
    consumption.settle(server.pid)
    return report.per_second


def stored_bytes(connection: Connection) -> tuple[int, int]:
    """Of the database, and of its log since it was made."""
    row = connection.execute(
        "select pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
    ).fetchone()
    assert row is not None
    return int(str(row[0])), int(str(row[1]))


def postmaster(connection: Connection) -> int:
    """The parent of the process that answers."""
    row = connection.execute("select pg_backend_pid()").fetchone()
    assert row is not None
    status = Path(f"/proc/{row[0]}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
