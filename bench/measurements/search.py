"""Search in 20,000 mails on both databases: what the index costs, and how fast it answers."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles

import uvloop

from bench.invented_mails import Writer, new_mails, writer_of
from bench.processes import scratch_folder
from bench.results import Result, at_most
from postroom import config
from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.clock import SystemClock
from postroom.mailbox import inboxes, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import indexing, message_search
from postroom.storage.database import Database, Tx
from postroom.storage.opening import open_database
from postroom_mail.search.query import parse
from tests.postgres_engine import running_postgres

DOMAIN = "postroom.localhost"
VOCABULARY = 7  # all mails and questions use one language
STORED_TOGETHER = 500
MOST_MS = {"word": 5, "phrase": 20, "prefix of three letters": 50}
TIMES_ON_POSTGRES = 5  # how much more of these it may take
SIZE_ON_SQLITE = "select sum(length(block)) as size from search_words_data"
SIZE_ON_POSTGRES = "select pg_total_relation_size('search_words') as size"


@dataclass(frozen=True, slots=True)
class SearchLoad:
    mails: int
    inboxes: int
    questions: int  # of each kind


LOAD = SearchLoad(mails=20_000, inboxes=20, questions=200)


def measure(size: int = LOAD.mails, load: SearchLoad = LOAD) -> list[Result]:
    load = replace(load, mails=size)
    with scratch_folder() as folder, running_postgres() as url:
        return [
            *uvloop.run(_measure_engine(folder / "sqlite", "", load)),
            *uvloop.run(_measure_engine(folder / "postgres", url, load)),
        ]


async def _measure_engine(folder: Path, url: str, load: SearchLoad) -> list[Result]:
    name = "PostgreSQL" if url else "SQLite"
    async with opened(folder, url) as db:
        owners = await db.write(add_inboxes, load.inboxes, SystemClock().now())
        seconds = await _store_and_index(db, owners, load.mails)
        size = await db.read_long(_index_bytes, 60, SIZE_ON_POSTGRES if url else SIZE_ON_SQLITE)
        return [
            Result(f"{name}: index", seconds / load.mails * 1e6, "µs/mail"),
            Result(f"{name}: index", size / load.mails, "bytes/mail"),
            *await _ask(db, name, load, owners),
        ]


@contextlib.asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[Database]:
    values = {"POSTROOM_DATA_DIR": str(folder), "POSTROOM_DATABASE_URL": url}
    db = await open_database(config.load(values), SystemClock().now())
    try:
        yield db
    finally:
        await db.close()


def add_inboxes(tx: Tx, count: int, now: int) -> list[Inbox]:
    account = accounts.add(tx, "bench", "developer", now)
    names = [f"bench-{number}" for number in range(count)]
    return [inboxes.add(tx, account.id, name, None, None, DOMAIN, now) for name in names]


async def _store_and_index(db: Database, owners: list[Inbox], mails: int) -> float:
    """The seconds that the index took."""
    writer, now, seconds = writer_of(VOCABULARY), SystemClock().now, 0.0
    for start in range(0, mails, STORED_TOGETHER):
        await db.write(_store, writer, owners, min(STORED_TOGETHER, mails - start), now())
        started = time.perf_counter()
        while await db.read(indexing.has_work, "bench", now()):
            await indexing.step(db, "bench", now())
        seconds += time.perf_counter() - started
    return seconds


def _store(tx: Tx, writer: Writer, owners: list[Inbox], count: int, now: int) -> None:
    made = new_mails(writer, owners, count, now)
    threads.add_all(tx, [thread for thread, _ in made])
    messages.add_all(tx, [message for _, message in made])
    indexing.enqueue_all(tx, [message.document.id for _, message in made])


def _index_bytes(tx: Tx, sql: str) -> int:
    row = tx.one(sql)
    assert row is not None
    return int(row["size"])


async def _ask(db: Database, engine: str, load: SearchLoad, owners: list[Inbox]) -> list[Result]:
    results = []
    for kind, make_question in _questions(writer_of(VOCABULARY)):
        times = []
        for number in range(load.questions):
            inbox = owners[number % len(owners)]
            scope = Scope(inbox.account_id, inbox.pod_id, inbox.id)
            times.append(await _time(db, scope, make_question()))
        aim = at_most(MOST_MS[kind] * (TIMES_ON_POSTGRES if engine == "PostgreSQL" else 1))
        p99 = quantiles(times, n=100, method="inclusive")[98]
        results.append(Result(f"{engine}: {kind} in one inbox, p99", p99, "ms", aim))
    return results


def _questions(writer: Writer) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "word", writer.word
    yield "phrase", lambda: f'"{writer.phrase()}"'
    yield "prefix of three letters", lambda: f"{writer.long_word()[:3]}*"


async def _time(db: Database, scope: Scope, q: str) -> float:
    started = time.perf_counter()
    await db.read_long(_find, 30, scope, q)
    return (time.perf_counter() - started) * 1000


def _find(tx: Tx, scope: Scope, q: str) -> int:
    question = message_search.ask(tx, scope, parse(q), DOMAIN)
    page = message_search.find(tx, question, None, 20, Links("", 0, b""), lambda: False)
    return len(page.found)
