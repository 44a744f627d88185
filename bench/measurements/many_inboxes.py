"""Email for 20,000 inboxes of 400 accounts on SQLite: what a deposit, a list and a search cost there."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import uvloop

from bench import consumption
from bench.measurements.search import DOMAIN, opened
from bench.measurements.send_costs import FRAME_BYTES, logged_pages, trees_of_pages
from bench.processes import scratch_folder
from bench.results import Result, at_most
from bench.smtp_load import SmtpLoad, compose
from postroom.accounts import accounts
from postroom.clock import SystemClock
from postroom.inward.deposit import deposit
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.mailbox import inboxes, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import indexing, message_search
from postroom.mailbox.thread_work import ANY_WORK
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Database, Tx
from postroom.storage.engines.sqlite import SqliteSession, connect, connect_writer
from postroom_mail.search.query import parse

INBOXES, INBOXES_OF_AN_ACCOUNT = 20_000, 50
BYTES = 5_000  # of an email
TOGETHER = (16, 500)  # deposited by one call
DEPOSITS = 2_000  # of each
QUESTIONS = 400  # each to another inbox
PAGE = 50
SHOWN_TREES = 20
STRIDE = 7_919  # a prime: one inbox after the other, of accounts far apart
HOLDER = "bench"
NUMBERS = itertools.count()  # of emails: the same one, handed over twice, is stored once
HEAD = b"Received: from bench.example by postroom.localhost;\r\n\tMon, 1 Jan 2026 00:00:00 +0000\r\n"


def measure(size: int = INBOXES) -> list[Result]:
    deposits = min(DEPOSITS, size)
    with scratch_folder() as folder:
        results = uvloop.run(_measure(folder, size, deposits))
        return [*results, *_read_log(folder / DATABASE_NAME, size, deposits)]


async def _measure(folder: Path, size: int, deposits: int) -> list[Result]:
    async with opened(folder, "") as db:
        found = await _add_all(db, size)
        where = f"{size:,} inboxes"
        results = [
            result
            for together in TOGETHER
            for name, owners in (("one inbox", found[:1]), (where, found))
            for result in await _deposit(db, name, owners, deposits, together)
        ]
        while await db.read(indexing.has_work, HOLDER, SystemClock().now()):
            await indexing.step(db, HOLDER, SystemClock().now())
        asked = list(islice(_in_turn(found), min(QUESTIONS, deposits)))
        results.append(await _ask(db, f"{where}: list of threads", asked, _list))
        results.append(await _ask(db, f"{where}: search for a word in one", asked, _search))
        return results


def _read_log(database: Path, size: int, deposits: int) -> list[Result]:
    """The pages that emails write once every inbox has one: of all, and of the dearest trees."""
    with closing(connect(database)) as reader, closing(SqliteSession(database, connect_writer)) as session:
        owners = list(map(Inbox.from_row, session.tx.all("select * from inboxes order by id")))
        in_turn = _in_turn(owners)
        _commit_all(session, islice(in_turn, size))
        reader.execute("pragma wal_checkpoint(truncate)")
        cpu_seconds = _commit_all(session, islice(in_turn, deposits))
        pages, trees = logged_pages(database), trees_of_pages(reader)
    by_tree = Counter(trees.get(page, "other") for page in pages)
    return [
        Result("one more each: deposit", cpu_seconds * 1e6 / deposits, "µs"),
        Result("one more each: log", len(pages) * FRAME_BYTES / 1000 / deposits, "kB", at_most(25)),
        *(
            Result(f"one more each: pages of {name}", count / deposits, "")
            for name, count in by_tree.most_common(SHOWN_TREES)
        ),
    ]


def _commit_all(session: SqliteSession, owners: Iterable[Inbox]) -> float:
    """Returns the processor time, without that of reading the emails."""
    mails, seconds = list(map(_accepted, owners)), 0.0
    for start in range(0, len(mails), TOGETHER[-1]):
        began = time.thread_time()
        session.begin()
        deposit(session.tx, mails[start : start + TOGETHER[-1]])
        session.commit()
        seconds += time.thread_time() - began
    return seconds


async def _add_all(db: Database, size: int) -> list[Inbox]:
    found: list[Inbox] = []
    for first in range(0, size, INBOXES_OF_AN_ACCOUNT):
        numbers = range(first, min(size, first + INBOXES_OF_AN_ACCOUNT))
        found += await db.write(_add_account, numbers, SystemClock().now())
    return found


def _add_account(tx: Tx, numbers: range, now: int) -> list[Inbox]:
    account = accounts.add(tx, f"bench {numbers.start}", "developer", now)
    return [inboxes.add(tx, account.id, f"b-{number}", None, None, DOMAIN, now) for number in numbers]


async def _deposit(
    db: Database, name: str, owners: Sequence[Inbox], count: int, together: int
) -> list[Result]:
    mails = list(map(_accepted, islice(_in_turn(owners), count)))
    before = consumption.of_family(os.getpid())
    for start in range(0, count, together):
        await db.write(deposit, mails[start : start + together])
    use = consumption.of_family(os.getpid()) - before
    return [
        Result(f"{name}, {together} at once: deposit", use.cpu_seconds * 1e6 / count, "µs"),
        Result(f"{name}, {together} at once: written", use.written_bytes / 1000 / count, "kB"),
    ]


def _in_turn(owners: Sequence[Inbox]) -> Iterator[Inbox]:
    at = 0
    while True:
        yield owners[at % len(owners)]
        at += STRIDE


def _accepted(inbox: Inbox) -> AcceptedMail:
    number = next(NUMBERS)
    raw = compose(SmtpLoad(0, inbox.address, 1, number, BYTES), number).removesuffix(b".\r\n")
    arrival = Arrival(
        Origin((Destination(inbox.id),), HEAD, "127.0.0.1", "bench.example", "sender@example.com"), raw
    )
    return AcceptedMail(read_mail(arrival), "http://localhost", SystemClock().now())


async def _ask(
    db: Database, name: str, asked: Sequence[Inbox], work: Callable[[Tx, Inbox], object]
) -> Result:
    began = time.process_time()
    for inbox in asked:
        await db.read(work, inbox)
    return Result(name, (time.process_time() - began) * 1e6 / len(asked), "µs")


def _list(tx: Tx, inbox: Inbox) -> object:
    return threads.list_within(tx, inbox.scope, None, None, PAGE, 0, ANY_WORK)


def _search(tx: Tx, inbox: Inbox) -> object:
    question = message_search.ask(tx, inbox.scope, parse("from"), DOMAIN)
    return message_search.find(tx, question, None, 20, Links("", 0, b""), lambda: False)
