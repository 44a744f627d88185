"""PostgreSQL ends badly, and the tables of the search index are empty: the index is made anew by itself."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from postroom.errors import Unavailable
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import indexing
from postroom.storage.database import Database, Tx
from postroom.storage.opening import open_database
from postroom_mail.search.query import parse
from tests import memory_folder
from tests.conftest import settings
from tests.doubles import START
from tests.postgres_engine import Engine, running_engine
from tests.stored import make_inbox, put_mail
from tests.waiting import until

OF_THE_INDEX = (
    *("search_words", "search_documents", "search_latecomers"),
    *("search_newest", "search_realms", "search_state"),
)
MAILS = 5


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running_engine(memory_folder.choose()) as running:
        yield running


def put_mails(tx: Tx, inbox: Inbox, now: int) -> None:
    for number in range(MAILS):
        put_mail(tx, inbox, "words", now + number, message_id=f"<{now}.{number}@there.example>")


async def index_all(db: Database, now: int) -> None:
    while await indexing.step(db, "node", now):
        pass


async def find(db: Database) -> list[str]:
    """Newest first."""

    def look(tx: Tx) -> list[str]:
        docs = tx.fulltext.find(parse("words"), [indexing.realm_of(1)], 2**62, 100)
        rows = tx.all("select doc, message_id from search_documents")
        named = {row["doc"]: row["message_id"] for row in rows}
        return [named[doc] for doc in docs]

    return await db.read(look)


async def newest_first(db: Database) -> list[str]:
    rows = await db.read(lambda tx: tx.all("select id from messages order by id desc"))
    return [row["id"] for row in rows]


async def until_it_is_back(db: Database) -> None:
    async def is_back() -> bool:
        with contextlib.suppress(Unavailable):
            return bool(await db.read(lambda tx: tx.one("select 1 as one")))
        return False

    await until(is_back)


@pytest.fixture
async def indexed(engine: Engine, tmp_path: Path) -> AsyncIterator[tuple[Database, Inbox]]:
    """With mails that are all in the index."""
    db = await open_database(settings(tmp_path, DATABASE_URL=engine.url), START)
    try:
        inbox = await db.write(make_inbox)
        await db.write(put_mails, inbox, START)
        await index_all(db, START)
        yield db, inbox
    finally:
        await db.close()


async def test_the_index_is_made_anew_after_a_crash_without_a_batch_from_before_and_kept_over_a_restart(
    engine: Engine, indexed: tuple[Database, Inbox]
) -> None:
    db, inbox = indexed
    assert await find(db) == await newest_first(db)

    engine.stop()
    engine.start()
    await until_it_is_back(db)
    assert await find(db) == await newest_first(db)
    assert not await indexing.step(db, "node", START)

    await db.write(put_mails, inbox, START + 1_000)
    batch = await db.read(indexing.prepare)
    assert batch is not None

    engine.crash()
    engine.start()
    await until_it_is_back(db)
    assert not await db.read(indexing.is_whole)
    assert (await db.read(indexing.progress)).earlier_percent == 0
    assert not await db.write_index(indexing.store, batch, "node", START + 1_000)
    assert await db.read(lambda tx: tx.all("select doc from search_words")) == []
    await db.write(put_mails, inbox, START + 2_000)
    await index_all(db, START + 2_000)
    assert await db.read(indexing.is_whole)
    assert await find(db) == await newest_first(db)
    assert len(await newest_first(db)) == 3 * MAILS


def test_all_tables_of_the_index_are_empty_together(postgres_url: str) -> None:
    """Else a crash would leave some that tell of entries which are gone."""
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "select relname from pg_class where relkind = 'r' and relpersistence = 'u'"
        ).fetchall()
    assert {name for (name,) in rows} == set(OF_THE_INDEX)
