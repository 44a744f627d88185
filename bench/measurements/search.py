"""Search in 200,000 mails: what the index costs, how fast it answers, and what it takes from intake."""

import contextlib
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import uvloop
from msgspec.structs import replace

from bench.letters import Writer
from bench.measurements.inbound import receiving_postroom
from bench.processes import scratch_folder
from bench.results import Peer, Result, at_least_times_peer, at_most
from bench.smtp_load import SmtpLoad, run_smtp_load
from postroom import config, ids
from postroom.accounts import accounts
from postroom.accounts.reach import Reach
from postroom.assembly import open_database
from postroom.clock import SystemClock
from postroom.mail.query import parse
from postroom.mailbox import inboxes, indexing, messages, search, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import INBOUND, RECEIVED, NewMessage
from postroom.storage.database import Database, Tx
from tests.filled_inbox import document
from tests.postgres_engine import running_postgres

DOMAIN = "postroom.localhost"
STORED_TOGETHER = 500
TIMES = {"SQLite": 1, "PostgreSQL": 5}  # how much of the aim an engine may take


@dataclass(frozen=True, slots=True)
class SearchLoad:
    mails: int
    inboxes: int
    questions: int  # of each kind
    intake_mails: int
    with_postgres: bool = True


LOAD = SearchLoad(mails=200_000, inboxes=20, questions=200, intake_mails=3_000)


def measure(size: int = LOAD.mails, load: SearchLoad = LOAD) -> list[Result]:
    load = SearchLoad(size, load.inboxes, load.questions, load.intake_mails, load.with_postgres)
    with scratch_folder() as folder:
        results = uvloop.run(_measure_engine("SQLite", load, folder, ""))
        if load.with_postgres:
            with running_postgres() as url:
                results += uvloop.run(_measure_engine("PostgreSQL", load, folder, url))
        return [*results, _measure_intake(folder, load)]


async def _measure_engine(engine: str, load: SearchLoad, folder: Path, url: str) -> list[Result]:
    settings = config.load({"POSTROOM_DATA_DIR": str(folder / engine), "POSTROOM_DATABASE_URL": url})
    db = await open_database(settings, SystemClock().now())
    try:
        writer = Writer(random.Random(7))
        owners = await _fill(db, load, writer)
        before = await db.read(_size, bool(url))
        seconds = await _index(db)
        per_mail = (await db.read(_size, bool(url)) - before) / load.mails
        costs = [
            Result(f"{engine}: index", seconds / load.mails * 1e6, "µs/mail"),
            Result(f"{engine}: index", per_mail, "bytes/mail"),
        ]
        return costs + await _ask(db, engine, load, owners, writer)
    finally:
        await db.close()


async def _fill(db: Database, load: SearchLoad, writer: Writer) -> list[Inbox]:
    now = SystemClock().now()
    account = await db.write(accounts.add, "bench", "developer", now)
    owners = [
        await db.write(inboxes.add, account.id, f"bench-{number}", None, None, DOMAIN, now)
        for number in range(load.inboxes)
    ]
    for start in range(0, load.mails, STORED_TOGETHER):
        count = min(STORED_TOGETHER, load.mails - start)
        await db.write(_store, [writer.random.choice(owners) for _ in range(count)], writer, now)
    return owners


def _store(tx: Tx, chosen: list[Inbox], writer: Writer, now: int) -> None:
    started = [threads.new(inbox, "bench", is_read=False, now=now) for inbox in chosen]
    threads.add_all(tx, started)
    new = [_new_message(inbox, thread.id, writer, now) for inbox, thread in zip(chosen, started, strict=True)]
    messages.add_all(tx, new)
    indexing.enqueue_all(tx, [message.document.id for message in new])


def _new_message(inbox: Inbox, thread_id: str, writer: Writer, now: int) -> NewMessage:
    text = writer.text()
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread_id,
        from_addr=writer.sender(),
        subject=writer.subject(),
        body_text=text,
        reply_text=text,
        direction=INBOUND,
    )
    return NewMessage(
        document=written,
        status=RECEIVED,
        from_address="a@example.com",
        has_attachments=False,
        raw=b"",
        blob=None,
        created_at=now,
        size_bytes=0,
    )


def _size(tx: Tx, is_postgres: bool) -> int:
    """Bytes of the whole database; indexing changes only the index."""
    if is_postgres:
        row = tx.one("select pg_database_size(current_database()) as size")
    else:
        row = tx.one(
            "select (page_count - freelist_count) * page_size as size"
            " from pragma_page_count, pragma_freelist_count, pragma_page_size"
        )
    assert row is not None
    return int(row["size"])


async def _index(db: Database) -> float:
    now = SystemClock().now
    started = time.perf_counter()
    while await db.read(indexing.has_work, "bench", now()):
        await indexing.step(db, "bench", now())
    return time.perf_counter() - started


async def _ask(
    db: Database, engine: str, load: SearchLoad, owners: list[Inbox], writer: Writer
) -> list[Result]:
    account_wide = Reach(owners[0].account_id)
    results = []
    for kind, aim, ask in _kinds(writer):
        for place, aimed in (("one inbox", aim), ("all inboxes", None)):
            times = []
            for _ in range(load.questions):
                inbox = writer.random.choice(owners)
                own = Reach(inbox.account_id, inbox.pod_id, inbox.id)
                times.append(await _time(db, own if place == "one inbox" else account_wide, ask()))
            p50, p99 = _p50_and_p99(times)
            bound = None if aimed is None else at_most(aimed * TIMES[engine])
            results += [
                Result(f"{engine}: {kind} in {place}, p50", p50, "ms"),
                Result(f"{engine}: {kind} in {place}, p99", p99, "ms", bound),
            ]
    return results


def _kinds(writer: Writer) -> Iterator[tuple[str, float | None, Callable[[], str]]]:
    yield "word", 5, writer.word
    yield "phrase", 20, lambda: f'"{writer.phrase()}"'
    yield "prefix", 50, lambda: f"{writer.word()[:3]}*"
    yield (
        "operators",
        None,
        lambda: f"{writer.word()} OR {writer.word()} -{writer.word()} from:{writer.name()}",
    )


async def _time(db: Database, reach: Reach, q: str) -> float:
    started = time.perf_counter()
    await db.read_long(_find, 30, reach, q)
    return (time.perf_counter() - started) * 1000


def _find(tx: Tx, reach: Reach, q: str) -> int:
    question = search.ask(tx, reach, parse(q), DOMAIN)
    page = search.find(tx, question, None, 20, Links("", b"", 0), lambda: False)
    return len(page.found)


def _p50_and_p99(times: list[float]) -> tuple[float, float]:
    cuts = quantiles(times, n=100, method="inclusive")
    return cuts[49], cuts[98]


def _measure_intake(folder: Path, load: SearchLoad) -> Result:
    """Without means that another node is said to hold the index, so that this one leaves it alone."""
    rates = {}
    for is_indexing in (False, True):
        own_folder = folder / f"intake-{is_indexing}"
        own_folder.mkdir()
        with receiving_postroom(own_folder) as server:
            if not is_indexing:
                _keep_from_indexing(own_folder / "postroom" / "postroom.db")
            load_of_mail = SmtpLoad(server.port, f"bench-0-0@{DOMAIN}", 20, load.intake_mails, 5_000)
            rates[is_indexing] = run_smtp_load(load_of_mail).per_second
    peer = Peer("without indexing", rates[False], rates[True] / rates[False])
    return Result("intake while indexing", rates[True], "mails/s", at_least_times_peer(0.9), peer)


def _keep_from_indexing(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update search_state set holder = 'another', held_until = ?", (2**60,))
