"""A send in the writer of SQLite, at 16 and at 100 sends a commit: processor time, and its log by tree."""

import sqlite3
import struct
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from bench.measurements import sending
from bench.measurements.sending import Sender
from bench.processes import scratch_folder
from bench.results import Result, at_most
from postroom.clock import SystemClock
from postroom.mailbox import inboxes
from postroom.operations.sending.send import SendBody, to_order
from postroom.outward.holding.carried import carried
from postroom.outward.send import to_composed_mail
from postroom.outward.send_stages import Context, Order, Submission
from postroom.outward.submit import submit
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Tx
from postroom.storage.engines.sqlite import SqliteSession, connect, connect_writer

SENDS = 3_200
FEW, MANY = 16, 100  # sends of a commit: as many as 32 and as 200 connections bring at once
LOG_HEAD_BYTES, FRAME_HEAD_BYTES, PAGE_BYTES = 32, 24, 4096
FRAME_BYTES = FRAME_HEAD_BYTES + PAGE_BYTES


def measure(size: int = SENDS) -> list[Result]:
    few, many = _measure(size, FEW), _measure(size, MANY)
    return [
        Result(f"processor of the writer, {FEW} a commit", few.microseconds, "µs"),
        Result(f"processor of the writer, {MANY} a commit", many.microseconds, "µs"),
        Result(f"written to the log, {FEW} a commit", few.kilobytes, "kB", at_most(20)),
        Result(f"written to the log, {MANY} a commit", many.kilobytes, "kB", at_most(10)),
        *(Result(f"pages of {name}, {FEW} a commit", count / size, "") for name, count in few.by_tree),
    ]


@dataclass(frozen=True, slots=True)
class SendCost:
    microseconds: float
    kilobytes: float
    by_tree: list[tuple[str, int]]


def _measure(size: int, together: int) -> SendCost:
    with scratch_folder() as folder:
        senders = uvloop.run(sending.seed(folder, size // sending.SENDS_OF_AN_INBOX))
        orders = uvloop.run(_orders(senders))
        database = folder / DATABASE_NAME
        session = SqliteSession(database, connect_writer)
        with closing(session), closing(connect(database)) as reader:
            first = len(logged_pages(database))
            seconds = sum(_commit(session, batch) for batch in _batches(orders, together))
            pages = logged_pages(database)[first:]
            trees = trees_of_pages(reader)
    by_tree = Counter(trees.get(page, "other") for page in pages).most_common()
    return SendCost(seconds * 1_000_000 / size, len(pages) * FRAME_BYTES / 1000 / size, by_tree)


async def _orders(senders: list[Sender]) -> list[tuple[Sender, Order]]:
    return [
        (sender, await to_order(sender.inbox_id, str(uuid.uuid4()), _body(number)))
        for number, sender in sending.turns(senders)
    ]


def _body(number: int) -> SendBody:
    return msgspec.convert(sending.body(number), SendBody)


def _batches(orders: list[tuple[Sender, Order]], together: int) -> Iterator[list[tuple[Sender, Order]]]:
    for start in range(0, len(orders), together):
        yield orders[start : start + together]


def _commit(session: SqliteSession, batch: list[tuple[Sender, Order]]) -> float:
    """Gives the time in the transaction alone; mails are composed before, as in the server."""
    submissions = [_compose(session.tx, sender, order) for sender, order in batch]
    began = time.thread_time()
    session.begin()
    submit(session.tx, submissions)
    session.commit()
    return time.thread_time() - began


def _compose(tx: Tx, sender: Sender, order: Order) -> Submission:
    now = SystemClock().now()
    caller, inbox = inboxes.find_with_caller(tx, sender.token, sender.inbox_id, now)
    assert caller is not None
    assert inbox is not None
    around = Context(inbox)
    composed = to_composed_mail(order, around, now)
    found = carried(order, composed, around)
    return Submission(caller, order, around, composed, None, "", now, is_remembered=True, values=found)


def logged_pages(database: Path) -> list[int]:
    """The number of each page that the log holds, in its order; one is there as often as it was written."""
    log = database.with_name(f"{database.name}-wal").read_bytes()
    heads = range(LOG_HEAD_BYTES, len(log) - FRAME_BYTES + 1, FRAME_BYTES)
    return [struct.unpack_from(">I", log, head)[0] for head in heads]


def trees_of_pages(connection: sqlite3.Connection) -> dict[int, str]:
    """The table or the index that each page belongs to, as far as this SQLite tells."""
    try:
        return dict(connection.execute("select pageno, name from dbstat").fetchall())
    except sqlite3.OperationalError:
        return {}
