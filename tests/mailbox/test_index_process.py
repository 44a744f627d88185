"""While much mail comes, a process of its own indexes it; what becomes of that process loses nothing."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from postroom.config import Config
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.search import index_process, index_upkeep, indexing, keep_indexed
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.data_folder import DATABASE_NAME
from postroom.storage.database import Database, Tx
from postroom.storage.engines.sqlite_indexer import SqliteIndexStore
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.end_to_end.process import command_of
from tests.mailbox.test_indexing import entries, find, index, new_inbox, store
from tests.waiting import until

MUCH = indexing.BATCH_APART + index_process.FEW


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Database]:
    db = await open_database(config, START)
    yield db
    await db.close()


def store_much(tx: Tx, inbox: Inbox) -> None:
    for number in range(MUCH):
        store(tx, inbox, f"Report {number}")


async def all_are_found(db: Database, inbox: Inbox) -> bool:
    if (await db.read(indexing.progress)).waiting:
        return False
    return await entries(db) == MUCH and len(await db.read(find, inbox, "report")) == 100


async def test_the_process_indexes_until_few_changes_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_process, "PAUSE_SECONDS", 0.01)
    each_look_is_later = SimpleNamespace(monotonic=itertools.count(0.0, 0.05).__next__)
    monkeypatch.setattr(index_process, "time", each_look_is_later)
    async with opened(settings(tmp_path)) as db:
        inbox = await new_inbox(db)
        await db.write(store_much, inbox)
        with closing(SqliteIndexStore(tmp_path / DATABASE_NAME)) as index_store:
            await index_process.index_much(index_store, index_upkeep.holder_of(tmp_path), 0.2)
        assert await all_are_found(db, inbox)


async def test_the_process_cannot_write_to_the_database_and_undoes_what_fails(tmp_path: Path) -> None:
    async with opened(settings(tmp_path)):
        with closing(SqliteIndexStore(tmp_path / DATABASE_NAME)) as index_store:
            with pytest.raises(Exception, match="readonly"):
                await index_store.read(lambda tx: tx.run("delete from search_changes"))

            def fail(tx: Tx) -> None:
                tx.run("update search_state set reached = 9")
                raise ValueError

            with pytest.raises(ValueError):
                await index_store.write_index(fail)
            assert (await index_store.read(index_upkeep.progress_mark))[0] == 0


async def test_it_is_much_only_where_many_changes_or_earlier_mails_wait(tmp_path: Path) -> None:
    def has_much(tx: Tx) -> bool:
        return indexing.has_at_least(tx, index_process.FEW)

    async with opened(settings(tmp_path)) as db:
        assert not await db.read(has_much)  # nothing was ever indexed, but there is nothing
        inbox = await new_inbox(db)
        for number in range(index_process.FEW - 1):
            await db.write(store, inbox, f"Report {number}")
        assert not await db.read(has_much)
        await db.write(store, inbox, "Last report")
        assert await db.read(has_much)
        await index(db)
        assert not await db.read(has_much)
        await db.write_index(index_upkeep.clear)
        assert await indexing.step(db, "node", START)
        assert await db.read(has_much)  # all of it has to be gone through again


def processes_of_the_index() -> list[int]:
    """Without those that have ended, whose command is gone."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(child) for child in children if index_process.__name__.encode() in command_of(int(child))]


async def the_process() -> int:
    async with asyncio.timeout(60):
        while not (found := processes_of_the_index()):
            await asyncio.sleep(0.02)
    return found[0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_process_that_is_killed_or_hangs_is_replaced_and_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr(keep_indexed, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(keep_indexed, "SILENT_SECONDS", 0.2)
    config = settings(tmp_path, WORKERS="1")
    async with opened(config) as db:
        blobs = LocalBlobs(tmp_path / "blobs")
        resources = Resources(config, db, blobs, FakeClock(), Resolver(), asyncio.Event())
        inbox = await new_inbox(db)
        await db.write(store_much, inbox)
        keeping = asyncio.create_task(keep_indexed.keep_indexed(resources))
        first = await the_process()
        os.kill(first, how)
        await until(lambda: all_are_found(db, inbox))
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert not processes_of_the_index()
        assert not command_of(first)
