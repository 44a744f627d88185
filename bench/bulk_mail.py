"""Fills databases with mail and its search index in bulk: mails are made once, by a process for each core."""

import os
import random
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

import psycopg
from msgspec.structs import replace
from psycopg.rows import dict_row

from bench.letters import Writer
from postroom import ids
from postroom.mail.search import days, index_entry, tokens
from postroom.mail.search.index_entry import Searchable
from postroom.mailbox import messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND, RECEIVED, NewMessage
from postroom.mailbox.search import indexing
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx
from postroom.storage.engines.postgres import PostgresTx
from postroom.storage.engines.postgres_connections import PostgresConnection
from postroom.storage.engines.postgres_words import PART_BITS, part_word
from postroom.storage.engines.sqlite import SqliteTx, connect
from tests.filled_inbox import document

VOCABULARY = 7  # all mails of a measurement use one language
MAILS_OF_A_BATCH = 1_000
BATCHES_AHEAD = 4
UNREAD_OF = 50  # one thread in so many
REALM = 1


@dataclass(frozen=True, slots=True)
class BulkEntry:
    """A mail in the index, as each engine keeps it."""

    doc: int
    fts5: str
    compressed: bytes
    tsvector: str


@dataclass(frozen=True, slots=True)
class BulkBatch:
    threads: list[Thread]
    messages: list[NewMessage]
    entries: list[BulkEntry]


@lru_cache(maxsize=1)
def writer() -> Writer:
    return Writer(random.Random(VOCABULARY))


def batches(owners: Sequence[Inbox], count: int, first_moment: int) -> Iterator[BulkBatch]:
    """In their order; each mail is a second after the one before."""
    if count <= MAILS_OF_A_BATCH:
        yield make_batch(list(owners), 0, count, first_moment)
        return
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        waiting = []
        for start in range(0, count, MAILS_OF_A_BATCH):
            size = min(MAILS_OF_A_BATCH, count - start)
            waiting.append(pool.submit(make_batch, list(owners), start, size, first_moment))
            if len(waiting) > BATCHES_AHEAD:
                yield waiting.pop(0).result()
        for batch in waiting:
            yield batch.result()


def make_batch(owners: list[Inbox], start: int, count: int, first_moment: int) -> BulkBatch:
    words = writer()
    words.random = random.Random(start)
    batch = BulkBatch([], [], [])
    for number in range(start, start + count):
        _add(batch, words.random.choice(owners), number, first_moment + number * 1000)
    return batch


def _add(batch: BulkBatch, inbox: Inbox, number: int, moment: int) -> None:
    words = writer()
    thread = threads.new(inbox, "bench", is_read=number % UNREAD_OF != 0, now=moment)
    text = words.text()
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, moment),
        thread_id=thread.id,
        from_addr=words.sender(),
        subject=words.subject(),
        body_text=text,
        reply_text=text,
        direction=INBOUND,
    )
    mail = indexing.to_searchable(written, [])
    batch.threads.append(thread)
    batch.messages.append(
        NewMessage(written, RECEIVED, "a@example.com", False, b"", None, moment, size_bytes=0)
    )
    batch.entries.append(_entry(mail, number + 1, [indexing.inbox_scope(inbox.id), *days.words_of(moment)]))


def _entry(mail: Searchable, doc: int, scopes: list[str]) -> BulkEntry:
    entry = index_entry.of_mail(mail, indexing.realm_of(REALM), scopes)
    text = index_entry.to_fts5(entry)
    return BulkEntry(doc, text, zlib.compress(text.encode(), 3), index_entry.to_tsvector(entry))


class BulkStore(Protocol):
    """One engine, filled without its usual care: nothing else uses it, and nothing of it must last."""

    def put(self, batch: BulkBatch) -> None: ...
    def close(self) -> None: ...


def put_rows(tx: Tx, batch: BulkBatch) -> None:
    threads.add_all(tx, batch.threads)
    messages.add_all(tx, batch.messages)
    tx.many(
        "insert into search_documents (doc, message_id, version) values :rows",
        [
            (entry.doc, message.document.id, tokens.VERSION)
            for entry, message in zip(batch.entries, batch.messages, strict=True)
        ],
    )


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._tx = SqliteTx(self._connection)
        self._connection.execute("pragma synchronous = off")

    def put(self, batch: BulkBatch) -> None:
        self._connection.execute("begin")
        put_rows(self._tx, batch)
        self._connection.executemany(
            "insert into search_words (rowid, words) values (?, ?)",
            [(entry.doc, entry.fts5) for entry in batch.entries],
        )
        self._connection.executemany(
            "insert into search_texts (doc, text) values (?, ?)",
            [(entry.doc, entry.compressed) for entry in batch.entries],
        )
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.execute("analyze")
        self._connection.close()


class PostgresStore:
    """The index of words is made when all rows are there, which takes a tenth of the time."""

    def __init__(self, url: str) -> None:
        self._connection = PostgresConnection(psycopg.connect(url, autocommit=True, row_factory=dict_row))
        self._tx = tx = PostgresTx(self._connection)
        row = tx.one("select indexdef from pg_indexes where indexname = 'search_words_by_word'")
        assert row is not None
        self._index = row["indexdef"]
        tx.run("drop index search_words_by_word")

    def put(self, batch: BulkBatch) -> None:
        self._tx.run("begin")
        put_rows(self._tx, batch)
        with self._connection.raw.cursor().copy("copy search_words (doc, words) from stdin") as copy:
            for entry in batch.entries:
                copy.write_row((entry.doc, f"{entry.tsvector} '{part_word(entry.doc >> PART_BITS)}'"))
        self._tx.run("commit")

    def close(self) -> None:
        self._tx.run("set maintenance_work_mem = '256MB'")
        self._tx.run(self._index)
        self._tx.run("vacuum analyze")
        self._connection.close()
