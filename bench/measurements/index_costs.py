"""The search index of SQLite: processor time, bytes written and bytes kept for mails of 5 and of 100 kB."""

import os
from collections.abc import Sequence
from contextlib import closing

import uvloop
from msgspec.structs import replace

from bench import consumption
from bench.measurements.search import add_inboxes, opened
from bench.processes import scratch_folder
from bench.results import Result
from bench.smtp_load import lines
from postroom import ids
from postroom.clock import SystemClock
from postroom.mailbox import messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import RECEIVED, NewMessage
from postroom.mailbox.search import indexing
from postroom.mailbox.threads import Thread
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Tx
from postroom.storage.engines import sqlite_index
from postroom.storage.engines.sqlite_indexer import SqliteIndexStore
from tests.filled_inbox import document

CHARACTERS = 30_000_000  # of mail of each size
STORED_CHARACTERS = 2_000_000  # at once
SIZES = {"5 kB": 4_700, "100 kB": 99_700, "5 kB with accents": 4_700}  # of the text
HOLDER = "bench"


def measure(size: int = CHARACTERS) -> list[Result]:
    return [result for name, length in SIZES.items() for result in uvloop.run(_measure(name, length, size))]


async def _measure(name: str, length: int, characters: int) -> list[Result]:
    count, together, now = max(1, characters // length), STORED_CHARACTERS // length, SystemClock().now
    with scratch_folder() as folder:
        async with opened(folder, "") as db:
            owners = await db.write(add_inboxes, 20, now())
            for start in range(0, count, together):
                numbers = range(start, min(count, start + together))
                await db.write(_store, owners, _words(name, length), numbers, now())
        database = folder / DATABASE_NAME
        before = consumption.of_family(os.getpid())
        with closing(SqliteIndexStore(database)) as store:
            while await store.read(indexing.has_work, HOLDER, now()):
                await indexing.step(store, HOLDER, now())
        sqlite_index.sync(sqlite_index.path_beside(database))
        use = consumption.of_family(os.getpid()) - before
        kept = sqlite_index.path_beside(database).stat().st_size
    return [
        Result(f"{name}: processor", use.cpu_seconds * 1000 / count, "ms"),
        Result(f"{name}: written", use.written_bytes / 1000 / count, "kB"),
        Result(f"{name}: kept", kept / 1000 / count, "kB"),
    ]


def _words(name: str, length: int) -> str:
    """Twice as much as a mail has."""
    words = lines(2 * length).decode()
    return words.replace("e", "é") if "accents" in name else words


def _store(tx: Tx, owners: Sequence[Inbox], words: str, numbers: range, now: int) -> None:
    made = [_new_mail(owners[number % len(owners)], words, number, now) for number in numbers]
    threads.add_all(tx, [thread for thread, _ in made])
    messages.add_all(tx, [message for _, message in made])
    indexing.enqueue_all(tx, [message.document.id for _, message in made])


def _new_mail(inbox: Inbox, words: str, number: int, now: int) -> tuple[Thread, NewMessage]:
    thread, length = threads.new(inbox, "bench", is_read=True, now=now), len(words) // 2
    begin = number * 7_919 % length  # each mail has words of its own
    text = words[begin : begin + length]
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread.id,
        subject=f"Mail {number}",
        body_text=text,
        reply_text=text,
    )
    return thread, NewMessage(written, RECEIVED, "a@example.com", False, b"", None, now, size_bytes=0)
