"""SQLite on a disk that has no room, or that has damaged the file: nothing of it stays unsaid."""

import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom import config as configuration
from postroom.accounts import accounts
from postroom.accounts.accounts import Account
from postroom.assembly import serving
from postroom.errors import Unavailable
from postroom.processes import process_metrics
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import StorageError, Tx
from postroom.storage.engines.sqlite import SqliteDatabase, open_sqlite
from postroom.storage.opening import open_database
from postroom.upkeep.integrity import check_integrity
from postroom.web.readiness import Readiness
from tests.conftest import running_server, settings, signing_key
from tests.doubles import START, FakeClock
from tests.raw_mails import raw_mail


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = open_sqlite(tmp_path / "postroom.db", START)
    yield opened
    await opened.close()


def limit_pages(tx: Tx, pages: int) -> None:
    """SQLite never goes below the present size, and answers beyond it as on a full disk."""
    tx.one(f"pragma max_page_count = {pages}")


async def fill(db: SqliteDatabase, kept: list[Account]) -> None:
    while True:
        kept.append(await db.write(accounts.add, f"{len(kept)} " + "x" * 190, "free", START))


async def test_a_full_disk_is_unavailable_keeps_what_was_stored_and_works_when_there_is_room(
    db: SqliteDatabase,
) -> None:
    kept = [await db.write(accounts.add, "kept", "free", START)]
    await db.write(limit_pages, 1)
    with pytest.raises(Unavailable):
        await fill(db, kept)
    assert await db.read(accounts.list_all) == sorted(kept, key=lambda account: account.id)
    await db.write(limit_pages, 1_000_000)
    kept.append(await db.write(accounts.add, "after", "free", START))
    assert await db.read(accounts.list_all) == sorted(kept, key=lambda account: account.id)


PAGE_BYTES = 4096


def overwrite_a_page_of(path: Path, table: str) -> None:
    """In the middle of a file that nobody has open."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        (page,) = connection.execute("select rootpage from sqlite_schema where name = ?", [table]).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(b"\xa5" * PAGE_BYTES)


async def test_damage_is_found_beside_all_other_work_and_ready_tells_of_it(tmp_path: Path) -> None:
    async with running_server(settings(tmp_path), FakeClock()) as server:
        await check_integrity(server.resources)
        assert (await server.api.get("/ready")).status_code == 200
    overwrite_a_page_of(tmp_path / "postroom.db", "suppressions")  # read by no start
    async with serving(settings(tmp_path), FakeClock(), None, signing_key) as postroom:
        before = process_metrics.DAMAGED_READS.counts().get("database", 0)
        await check_integrity(postroom.resources)
        assert "suppressions" in postroom.resources.damage.found
        assert process_metrics.DAMAGED_READS.counts()["database"] == before + 1
        with pytest.raises(Unavailable, match="damaged"):
            await Readiness(postroom.resources).require()


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_database_that_was_lost_beside_large_mails_is_no_new_server(
    tmp_path: Path, is_there: bool
) -> None:
    name = LocalBlobs(tmp_path / "blobs").put(b"a large mail")
    if is_there:
        (tmp_path / "postroom.db").touch()
    config = configuration.load({"POSTROOM_DATA_DIR": str(tmp_path)})
    with pytest.raises(StorageError, match="the folder has data of a server"):
        await open_database(config, START)
    assert LocalBlobs(tmp_path / "blobs").get(name) == b"a large mail"


async def test_a_journal_beside_a_lost_database_is_no_new_server_either(tmp_path: Path) -> None:
    segment = tmp_path / "journal" / "0-0" / "0000000000000001"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"a mail that has its 250")
    config = configuration.load({"POSTROOM_DATA_DIR": str(tmp_path)})
    with pytest.raises(StorageError, match="the folder has data of a server"):
        await open_database(config, START)


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("trace", ["search.db", "outcomes/0000000000000001", "postroom.db-wal"])
async def test_anything_that_only_a_server_leaves_tells_a_lost_database_from_a_new_one(
    tmp_path: Path, is_there: bool, trace: str
) -> None:
    (tmp_path / trace).parent.mkdir(exist_ok=True)
    (tmp_path / trace).write_bytes(b"of a server")
    if is_there:
        (tmp_path / "postroom.db").touch()
    for may_create in (True, False):
        with pytest.raises(StorageError, match="the folder has data of a server"):
            await open_database(
                configuration.load({"POSTROOM_DATA_DIR": str(tmp_path)}), START, may_create=may_create
            )
    assert (tmp_path / trace).read_bytes() == b"of a server"


async def test_an_empty_file_without_anything_beside_it_is_a_new_server(tmp_path: Path) -> None:
    (tmp_path / "postroom.db").touch()
    await (await open_database(configuration.load({"POSTROOM_DATA_DIR": str(tmp_path)}), START)).close()


async def test_every_file_that_a_server_makes_is_private(tmp_path: Path) -> None:
    """Also with a umask that lets everybody read."""
    folder = tmp_path / "of" / "a server"
    before = os.umask(0o022)
    try:
        async with running_server(settings(folder, JOURNAL="on"), FakeClock()) as server:
            await server.new_inbox("hello")
            await server.deliver(raw_mail("x" * 300_000), "hello")
            await server.deliver(raw_mail(), "hello")
            made = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "of").rglob("*")}
    finally:
        os.umask(before)
    assert any("blobs" in path.parts for path in made)
    public = {str(path.relative_to(tmp_path)): oct(mode) for path, mode in made.items() if mode & 0o077}
    assert {name for name in public if "/tls/" not in name} == set()  # the tests' own certificate
    assert (tmp_path / "of").stat().st_mode & 0o777 == 0o700
