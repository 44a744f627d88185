"""Search in 200,000 mails: what the index costs, how fast it answers, and what it takes from intake."""

import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles
from typing import Any

import uvloop

from bench.bulk_mail import REALM, PostgresStore, SqliteStore, batches, make_batch, writer
from bench.letters import Writer
from bench.measurements.inbound import MailServer, receiving_postroom
from bench.processes import scratch_folder
from bench.results import Result, at_least_times_peer, at_most
from bench.rounds import alternate, compare
from bench.smtp_load import SmtpLoad, run_smtp_load
from postroom import config
from postroom.accounts import accounts
from postroom.accounts.reach import Reach
from postroom.assembly import open_database
from postroom.clock import SystemClock
from postroom.mail.search import tokens
from postroom.mail.search.query import parse
from postroom.mailbox import inboxes, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import indexing, search
from postroom.storage.database import Database, Tx
from tests.postgres_engine import running_postgres

DOMAIN = "postroom.localhost"
TIMES = {"SQLite": 1, "PostgreSQL": 5}  # how much of the aim an engine may take
LABELLED_OF = 400  # one thread in so many
FOUND_WITHIN_SECONDS = 2
LOOKS_APART_SECONDS = 0.05
STORED_TOGETHER = 500
SIZE_ON_SQLITE = (
    "select (select sum(length(block)) from search_words_data) + (select sum(length(text)) from search_texts)"
    " as size"
)
SIZE_ON_POSTGRES = "select pg_total_relation_size('search_words') as size"


@dataclass(frozen=True, slots=True)
class SearchLoad:
    mails: int
    inboxes: int
    questions: int  # of each kind
    intake_mails: int  # in each round
    with_postgres: bool = True
    mails_by_the_job: int = 4_000  # indexed as the server does it, on top of all others
    intake_rounds: int = 3
    paced_mails: int = 2_000
    paced_per_second: float = 200


LOAD = SearchLoad(mails=200_000, inboxes=20, questions=200, intake_mails=2_000)


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    folder: Path
    url: str  # empty: SQLite

    @contextlib.asynccontextmanager
    async def opened(self) -> Any:
        values = {"POSTROOM_DATA_DIR": str(self.folder), "POSTROOM_DATABASE_URL": self.url}
        db = await open_database(config.load(values), SystemClock().now())
        try:
            yield db
        finally:
            await db.close()

    def store(self) -> SqliteStore | PostgresStore:
        return PostgresStore(self.url) if self.url else SqliteStore(self.folder / "postroom.db")


def measure(size: int = LOAD.mails, load: SearchLoad = LOAD) -> list[Result]:
    load = replace(load, mails=size)
    with scratch_folder() as folder, contextlib.ExitStack() as stack:
        engines = [Engine("SQLite", folder / "sqlite", "")]
        if load.with_postgres:
            engines.append(Engine("PostgreSQL", folder / "postgres", stack.enter_context(running_postgres())))
        owners = _fill(engines, load)
        results = [
            result for engine in engines for result in uvloop.run(_measure_engine(engine, load, owners))
        ]
        return [*results, *_measure_intake(folder, load)]


def _fill(engines: Sequence[Engine], load: SearchLoad) -> list[Inbox]:
    """The same mails for each, made once."""
    now = SystemClock().now()
    owners = uvloop.run(_add_owners(engines, load.inboxes, now))
    stores = [engine.store() for engine in engines]
    for batch in batches(owners, load.mails, now - load.mails * 1000):
        for store in stores:
            store.put(batch)
    for store in stores:
        store.close()
    for engine in engines:
        uvloop.run(_note_filled(engine, owners[0], load.mails))
    return owners


async def _add_owners(engines: Sequence[Engine], count: int, now: int) -> list[Inbox]:
    async with engines[0].opened() as db:
        owners: list[Inbox] = await db.write(_add_inboxes, count, now)
        copied = await db.read(_read_owners)
    for engine in engines[1:]:
        async with engine.opened() as db:
            await db.write(_write_owners, copied)
    return owners


def _add_inboxes(tx: Tx, count: int, now: int) -> list[Inbox]:
    account = accounts.add(tx, "bench", "developer", now)
    return [
        inboxes.add(tx, account.id, f"bench-{number}", None, None, DOMAIN, now) for number in range(count)
    ]


def _read_owners(tx: Tx) -> dict[str, list[dict[str, Any]]]:
    tables = ("accounts", "pods", "inboxes")
    return {table: [dict(row) for row in tx.all(f"select * from {table}")] for table in tables}  # type: ignore[call-overload]


def _write_owners(tx: Tx, copied: dict[str, list[dict[str, Any]]]) -> None:
    for table, rows in copied.items():
        tx.many(
            f"insert into {table} ({', '.join(rows[0])}) values :rows", [tuple(row.values()) for row in rows]
        )


async def _note_filled(engine: Engine, owner: Inbox, mails: int) -> None:
    async with engine.opened() as db:
        await db.write(_note_filled_rows, owner, mails)


def _note_filled_rows(tx: Tx, owner: Inbox, mails: int) -> None:
    indexing.add_realms(tx, {owner.pod_id: owner.account_id})
    row = tx.one("select number from search_realms")
    assert row is not None
    assert row["number"] == REALM
    tx.run("update search_state set version = :version, last_doc = :last", version=tokens.VERSION, last=mails)
    tx.run(
        "insert into labels (thread_id, label, shown, account_id, pod_id, inbox_id, last_message_at)"
        " select messages.thread_id, 'urgent', 'urgent', :account_id, :pod_id, messages.inbox_id,"
        " messages.created_at from search_documents join messages on messages.id = message_id"
        f" where doc % {LABELLED_OF} = 0",
        account_id=owner.account_id,
        pod_id=owner.pod_id,
    )


async def _measure_engine(engine: Engine, load: SearchLoad, owners: list[Inbox]) -> list[Result]:
    async with engine.opened() as db:
        size = await db.read_long(_index_bytes, 60, SIZE_ON_POSTGRES if engine.url else SIZE_ON_SQLITE)
        asked = await _ask(db, engine.name, load, owners)
        seconds = await _index_by_the_job(db, owners, load)
        costs = [
            Result(f"{engine.name}: index", seconds / load.mails_by_the_job * 1e6, "µs/mail"),
            Result(f"{engine.name}: index", size / load.mails, "bytes/mail"),
        ]
        return costs + asked


def _index_bytes(tx: Tx, sql: str) -> int:
    row = tx.one(sql)
    assert row is not None
    return int(row["size"])


async def _index_by_the_job(db: Database, owners: list[Inbox], load: SearchLoad) -> float:
    now = SystemClock().now
    for start in range(0, load.mails_by_the_job, STORED_TOGETHER):
        await db.write(_store, owners, load.mails + start, min(STORED_TOGETHER, load.mails_by_the_job), now())
    started = time.perf_counter()
    while await db.read(indexing.has_work, "bench", now()):
        await indexing.step(db, "bench", now())
    return time.perf_counter() - started


def _store(tx: Tx, owners: list[Inbox], start: int, count: int, now: int) -> None:
    batch = make_batch(owners, start, count, now)
    threads.add_all(tx, batch.threads)
    messages.add_all(tx, batch.messages)
    indexing.enqueue_all(tx, [message.document.id for message in batch.messages])


async def _ask(db: Database, engine: str, load: SearchLoad, owners: list[Inbox]) -> list[Result]:
    words = writer()
    words.random = random.Random(7)
    account_wide = Reach(owners[0].account_id)
    results = []
    for kind, aim, ask in _kinds(words):
        for place, aimed in (("one inbox", aim), ("all inboxes", None)):
            times = []
            for _ in range(load.questions):
                inbox = words.random.choice(owners)
                own = Reach(inbox.account_id, inbox.pod_id, inbox.id)
                times.append(await _time(db, own if place == "one inbox" else account_wide, ask()))
            p50, p99 = _p50_and_p99(times)
            bound = None if aimed is None else at_most(aimed * TIMES[engine])
            results += [
                Result(f"{engine}: {kind} in {place}, p50", p50, "ms"),
                Result(f"{engine}: {kind} in {place}, p99", p99, "ms", bound),
            ]
    return results


def _kinds(words: Writer) -> Iterator[tuple[str, float | None, Callable[[], str]]]:
    yield "word", 5, words.word
    yield "phrase", 20, lambda: f'"{words.phrase()}"'
    yield "prefix of three letters", 50, lambda: f"{words.long_word()[:3]}*"
    yield (
        "operators",
        None,
        lambda: f"{words.word()} OR {words.word()} -{words.word()} from:{words.name()}",
    )
    yield "word and label", None, lambda: f"{words.word()} label:urgent"
    yield "word and unread", None, lambda: f"{words.word()} is:unread"


async def _time(db: Database, reach: Reach, q: str) -> float:
    started = time.perf_counter()
    await db.read_long(_find, 30, reach, q)
    return (time.perf_counter() - started) * 1000


def _find(tx: Tx, reach: Reach, q: str) -> int:
    question = search.ask(tx, reach, parse(q), DOMAIN)
    page = search.find(tx, question, None, 20, Links("", 0, b""), lambda: False)
    return len(page.found)


def _p50_and_p99(times: list[float]) -> tuple[float, float]:
    cuts = quantiles(times, n=100, method="inclusive")
    return cuts[49], cuts[98]


def _measure_intake(folder: Path, load: SearchLoad) -> list[Result]:
    """Without means that another node is said to hold the index, so that this one leaves it alone."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for is_indexing in (True, False):
            own_folder = folder / f"intake-{is_indexing}"
            own_folder.mkdir()
            servers[is_indexing] = stack.enter_context(receiving_postroom(own_folder))
        _keep_from_indexing(_database(folder, False))
        lag = _lag(servers[True], _database(folder, True), load)
        pairs = alternate(
            load.intake_rounds,
            lambda: _rate(servers[True], _database(folder, True), load),
            lambda: _rate(servers[False], None, load),
        )
    rates = compare(pairs, lambda rate: rate)
    peer = rates.peer("without indexing")
    return [
        Result(
            f"index behind intake at {load.paced_per_second:g} mails/s, worst",
            lag,
            "s",
            at_most(FOUND_WITHIN_SECONDS),
        ),
        Result("intake while indexing", rates.value, "mails/s", at_least_times_peer(0.9), peer),
    ]


def _database(folder: Path, is_indexing: bool) -> Path:
    return folder / f"intake-{is_indexing}" / "postroom" / "postroom.db"


def _keep_from_indexing(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update search_state set holder = 'another', held_until = ?", (2**60,))


def _rate(server: MailServer, database: Path | None, load: SearchLoad) -> float:
    mails = SmtpLoad(
        server.port, f"bench-0-0@{DOMAIN}", 20, load.intake_mails, 5_000, run=random.randbytes(4).hex()
    )
    rate = run_smtp_load(mails).per_second
    if database is not None:  # what is left to do must not slow the other down
        while _oldest_waiting(database) is not None:
            time.sleep(LOOKS_APART_SECONDS)
    return rate


def _lag(server: MailServer, database: Path, load: SearchLoad) -> float:
    """How old the oldest mail was that had still to be indexed, at worst, in seconds."""
    mails = SmtpLoad(
        *(server.port, f"bench-0-0@{DOMAIN}", 20, load.paced_mails, 5_000),
        per_second=load.paced_per_second,
        run="paced",
    )
    client = threading.Thread(target=run_smtp_load, args=(mails,))
    client.start()
    worst = 0.0
    while client.is_alive() or _oldest_waiting(database) is not None:
        oldest = _oldest_waiting(database)
        worst = max(worst, 0 if oldest is None else time.time() - oldest)
        time.sleep(LOOKS_APART_SECONDS)
    return worst


def _oldest_waiting(database: Path) -> float | None:
    """When it came: its id begins with that moment."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (message_id,) = connection.execute("select min(message_id) from search_queue").fetchone()
    return None if message_id is None else int(message_id[4:16], 16) / 1000
