"""A server with SQLite becomes one with PostgreSQL, however often that is interrupted."""

import asyncio
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from postroom.assembly import serving
from postroom.clock import SystemClock
from postroom.commands import backups
from postroom.inward.journal import positions
from postroom.inward.journal.entries import encode
from postroom.inward.mails import Arrival, Destination, Origin
from postroom.mailbox import raw_mails
from postroom.storage.data_folder import FolderLock
from postroom.storage.database import StorageError
from postroom.storage.database_copy import list_tables
from postroom.storage.engines.postgres import UNFINISHED_MOVE, open_postgres
from postroom.storage.segments import SegmentWriter
from postroom.transfer import backup_file, move_server
from tests import warm_start
from tests.api.test_deletion import mail
from tests.conftest import (
    Server,
    api_client,
    new_postgres_database,
    running_server,
    settings,
    signing_key,
)
from tests.doubles import FakeClock
from tests.transfer.test_backup import back_up
from tests.waiting import until

LARGE = b"x" * raw_mails.IN_ROW_BYTES
MAILS = 5


@pytest.fixture
def target() -> Iterator[str]:
    """An empty database, as `createdb` makes it."""
    with new_postgres_database("template1") as url:
        yield url


async def fill(server: Server) -> str:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1, body=LARGE), "own")
    for number in range(2, MAILS + 1):
        await server.deliver(mail(number, body=b"pelican"), "own")
    draft = (await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "d"})).json()
    file = {"attachments": ("large.bin", LARGE * 2, "application/octet-stream")}
    assert (await server.api.post(f"/v1/drafts/{draft['id']}/attachments", files=file)).is_success
    return inbox_id


def leave_in_journal(folder: Path, inbox_id: str, raw: bytes) -> None:
    journal = folder / positions.FOLDER / "7-of-a-worker"
    journal.mkdir(parents=True)
    left = Arrival(Origin((Destination(inbox_id),), b"", "127.0.0.1", "x", "alice@example.com"), raw)
    SegmentWriter(journal, 1).append([encode(left)])


def kill_after(rows: int, folder: Path, target: str) -> None:
    """In a copy of this process, which needs nothing loaded."""
    copy = os.fork()
    if copy == 0:
        try:
            move_until_killed(rows, folder, target)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == -signal.SIGKILL


def move_until_killed(rows: int, folder: Path, target: str) -> None:
    """In batches of three rows, until so many rows are copied and compared."""
    reached = 0

    def tell(by: int) -> None:
        nonlocal reached
        reached += by
        if reached >= rows:
            os.kill(os.getpid(), signal.SIGKILL)

    move_server.BATCH_ROWS = 3
    move_server.move_rows(folder / "postroom.db", target, 1_800_000_000_000, tell)


def move(folder: Path, target: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return warm_start.run(["move", "--to", target], os.environ | {"POSTROOM_DATA_DIR": str(folder)} | more)


def refusal(folder: Path, target: str, **more: str) -> str:
    done = move(folder, target, **more)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def rows_reached(target: str) -> int:
    with psycopg.connect(target) as connection:
        row = connection.execute(f"select coalesce(sum(rows), 0) from {UNFINISHED_MOVE}").fetchone()
    assert row is not None
    return int(row[0])


NOT_STORED = (("messages", "category"),)  # made from the document


def rows_here(folder: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(folder / "postroom.db")) as connection:
        tables = [row[0] for row in connection.execute("select name from sqlite_schema where type = 'table'")]
        return {table: written(connection, table) for table in tables}


def rows_there(target: str) -> dict[str, list[str]]:
    with psycopg.connect(target) as connection:
        return {table: written(connection, table) for table in list_tables(connection)}


def written(
    connection: "sqlite3.Connection | psycopg.Connection[tuple[object, ...]]", table: str
) -> list[str]:
    cursor = connection.execute(f"select * from {table}")
    names = [column[0] for column in cursor.description or ()]
    rows = [zip(names, row, strict=True) for row in cursor.fetchall()]
    return sorted(repr(sorted(each for each in row if (table, each[0]) not in NOT_STORED)) for row in rows)


async def test_a_server_that_is_killed_on_its_way_into_postgresql_is_there_as_it_was(
    tmp_path: Path, clock: FakeClock, target: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    async with running_server(settings(folder), clock) as server:
        inbox_id = await fill(server)
        before = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
        raws = {
            each["id"]: (await server.api.get(f"/v1/messages/{each['id']}/raw")).content for each in before
        }
        token = server.token
    leave_in_journal(folder, inbox_id, mail(90))
    here = rows_here(folder)
    total = move_server.count_rows(folder / "postroom.db")
    reached = []
    for rows in (total // 4, total // 2):
        kill_after(rows, folder, target)
        reached.append(rows_reached(target))
        with pytest.raises(StorageError, match="is not finished yet"):
            await open_postgres(target, clock.now())
    assert 0 < reached[0] < reached[1] < total
    done = await asyncio.to_thread(move, folder, target)
    assert (done.returncode, done.stdout.startswith(f"{total} rows of")) == (0, True), done
    there = rows_there(target)
    assert UNFINISHED_MOVE not in there
    compared = [table for table in there if move_server.is_moved(table)]
    assert {"accounts", "messages", "raw_mails", "threads", "events", "draft_files"} <= set(compared)
    assert {table: there[table] for table in compared} == {table: here[table] for table in compared}
    assert rows_here(folder) == here  # and nothing was changed here
    assert len(there["search_documents"]) == MAILS
    config = settings(folder, DATABASE_URL=target)
    async with serving(config, clock, None, signing_key) as postroom:
        assert postroom.first_token is None
        async with api_client(postroom.resources.config.base_url, token) as api:
            again = Server(postroom.resources, api, token, clock, postroom.smtp_port)
            for message_id, raw in raws.items():
                assert (await api.get(f"/v1/messages/{message_id}/raw")).content == raw
            await again.deliver(mail(91), "own")
            await until_total(again, inbox_id, MAILS + 2)  # with the one in the journal
            found = (await api.get("/v1/search", params={"q": "pelican"})).json()["data"]
            assert len(found) == MAILS - 1


async def test_a_move_that_is_killed_after_its_rows_goes_on_with_the_files_and_the_index(
    tmp_path: Path, clock: FakeClock, target: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    async with running_server(settings(folder), clock) as server:
        await fill(server)
    path = folder / "postroom.db"
    # As killed in its second phase: all rows are there, the index is not.
    moved = await asyncio.to_thread(move_server.move_rows, path, target, clock.now(), lambda by: None)
    assert len(rows_there(target)["search_documents"]) == 0
    for _ in range(2):
        done = await asyncio.to_thread(move, folder, target)
        assert (done.returncode, done.stdout.startswith(f"{moved.rows} rows of")) == (0, True), done
        assert len(rows_there(target)["search_documents"]) == MAILS
    with closing(sqlite3.connect(path)) as connection:  # another state here: it is not what was moved
        connection.execute("update inboxes set display_name = 'later'")
        connection.commit()
    assert "already has accounts" in await asyncio.to_thread(refusal, folder, target)


async def until_total(server: Server, inbox_id: str, total: int) -> None:
    async def has_come() -> bool:
        shown: int = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"]
        return shown == total

    await until(has_come)


async def test_a_move_begins_anew_when_mail_came_in_between_and_when_a_row_was_changed_there(
    tmp_path: Path, clock: FakeClock, target: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "postroom.db"
    async with running_server(settings(folder), clock) as server:
        inbox_id, token = await fill(server), server.token
    kill_after(10, folder, target)
    async with (
        serving(settings(folder), clock, None, signing_key) as postroom,
        api_client(postroom.resources.config.base_url, token) as api,
    ):
        again = Server(postroom.resources, api, token, clock, postroom.smtp_port)
        await again.deliver(mail(50), "own")
        await until_total(again, inbox_id, MAILS + 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update inboxes set display_name = 'N' || char(0) || 'L'")
        connection.commit()
    kill_after(move_server.count_rows(path) + 1, folder, target)  # all are there, and one is compared
    with psycopg.connect(target) as connection:
        assert connection.execute("update messages set status = 'changed'").rowcount == MAILS + 1
    with pytest.raises(StorageError, match="table messages is not there as it is here"):
        await asyncio.to_thread(move_server.move_rows, path, target, SystemClock().now(), lambda by: None)
    told: list[int] = []
    moved = await asyncio.to_thread(move_server.move_rows, path, target, clock.now(), told.append)
    assert sum(told) == 2 * moved.rows == 2 * move_server.count_rows(path)
    assert moved.without_nul == 1
    there = rows_there(target)
    assert len(there["messages"]) == MAILS + 1
    assert "('display_name', 'N\ufffdL')" in there["inboxes"][0]


async def test_what_cannot_be_moved_is_said_in_one_line_and_nothing_is_changed(
    tmp_path: Path, clock: FakeClock, target: str, postgres_url: str
) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    folder.mkdir()
    async with running_server(settings(folder), clock):
        assert "already runs on the data folder" in await asyncio.to_thread(refusal, folder, target)
    async with running_server(settings(other, DATABASE_URL=postgres_url), clock):
        told = await asyncio.to_thread(refusal, folder, postgres_url)
        assert "already has accounts. Move into an empty one." in told
    assert "no SQLite database" in refusal(tmp_path / "nothing", target)
    assert not (tmp_path / "nothing").exists()
    assert "postgresql://user" in refusal(folder, "mysql://127.0.0.1/x")
    assert "already" in refusal(folder, target, POSTROOM_DATABASE_URL=postgres_url)
    assert "cannot be reached" in refusal(folder, "postgresql://127.0.0.1:9/none?connect_timeout=5")
    with psycopg.connect(target) as connection:
        assert list_tables(connection) == []
        connection.execute("create table of_another (id integer)")
    lock = FolderLock(folder)
    lock.release()
    with pytest.raises(StorageError, match="other tables"):
        move_server.move_rows(folder / "postroom.db", target, clock.now(), lambda by: None)


async def test_a_backup_can_be_restored_where_a_move_was_never_finished(
    tmp_path: Path, clock: FakeClock, target: str
) -> None:
    moved, kept, empty = (tmp_path / name for name in ("moved", "kept", "empty"))
    for folder in (moved, kept, empty):
        folder.mkdir()
    async with running_server(settings(moved), clock) as server:
        await server.new_inbox("moved")
    kill_after(move_server.count_rows(moved / "postroom.db"), moved, target)  # all are copied, none compared
    with new_postgres_database("template1") as of_backup:
        async with running_server(settings(kept, DATABASE_URL=of_backup), clock) as server:
            await server.new_inbox("kept")
            await back_up(server, tmp_path / "all.backup")
    config = settings(empty, DATABASE_URL=target)
    manifest = backup_file.verify(tmp_path / "all.backup")
    with closing(move_server.open_target(target)), pytest.raises(StorageError, match="another move"):
        await asyncio.to_thread(backups._restore, config, tmp_path / "all.backup", manifest)
    assert rows_reached(target) > 0
    await asyncio.to_thread(backups._restore, config, tmp_path / "all.backup", manifest)
    there = rows_there(target)
    assert UNFINISHED_MOVE not in there
    assert [("kept" in row, "moved" in row) for row in there["inboxes"]] == [(True, False)]
    db = await open_postgres(target, clock.now())
    await db.close()
