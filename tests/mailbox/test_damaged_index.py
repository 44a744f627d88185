"""A search index that is damaged or gone: noticed, reported, and rebuilt while the server runs."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.upkeep.integrity import check_integrity
from tests import warm_start
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail
from tests.waiting import until

MAILS = 40
PAGE_BYTES = 4096


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(settings(tmp_path), clock) as server:
        await server.new_inbox("hello")
        for number in range(MAILS):
            text = " ".join(f"word{number * 1000 + each}" for each in range(200))
            await server.deliver(raw_mail(f"pelican {text}"), "hello")
        await until_found(server)
        yield server


async def search(server: Server) -> int:
    """How many are found, or the status where there is no answer."""
    answer = await server.api.get("/v1/search", params={"q": "pelican", "limit": 100})
    assert answer.status_code in (200, 503), answer.text
    return len(answer.json()["data"]) if answer.status_code == 200 else -answer.status_code


async def until_found(server: Server) -> None:
    async with asyncio.timeout(120):
        while await search(server) != MAILS:
            await asyncio.sleep(0.02)


def damage_behind_the_header(path: Path) -> None:
    """In all pages but the first, as they are on the disk."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(b"\xa5" * (size - PAGE_BYTES))


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = warm_start.run([*arguments], os.environ | {"POSTROOM_DATA_DIR": str(folder)})
    assert "Traceback" not in done.stderr + done.stdout, done
    return done


async def test_a_damaged_index_is_rebuilt_by_a_server_that_runs(server: Server, tmp_path: Path) -> None:
    damage_behind_the_header(tmp_path / "search.db")
    await until_found(server)
    await check_integrity(server.resources)  # what no search has read
    await until_found(server)
    assert (await server.api.get("/ready")).status_code == 200
    assert 'postroom_damaged_reads_total{what="search index"}' in (await server.api.get("/metrics")).text


@pytest.mark.parametrize("names", [["search.db"], ["search.db", "search.db-wal", "search.db-shm"]])
async def test_an_index_that_is_deleted_is_rebuilt_without_a_restart(
    server: Server, tmp_path: Path, names: list[str]
) -> None:
    for name in names:
        (tmp_path / name).unlink()
    await until(lambda: (tmp_path / "search.db").exists())
    await server.deliver(raw_mail("pelican, the last"), "hello")
    async with asyncio.timeout(120):
        while await search(server) != MAILS + 1:
            await asyncio.sleep(0.02)
    with contextlib.closing(sqlite3.connect(tmp_path / "search.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("select count(*) from search_documents").fetchone() == (MAILS + 1,)


def damage_root_of(path: Path, table: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        (page,) = connection.execute("select rootpage from sqlite_schema where name = ?", [table]).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(b"\xa5" * PAGE_BYTES)


@pytest.mark.parametrize("table", ["search_documents", "search_words_data", "search_realms"])
async def test_verify_reports_a_damaged_index_and_rebuilds_it_without_a_traceback(
    tmp_path: Path, clock: FakeClock, table: str
) -> None:
    path = tmp_path / "search.db"
    async with running_server(settings(tmp_path), clock) as server:
        await server.new_inbox("hello")
        await server.deliver(raw_mail("pelican"), "hello")
    damage_root_of(path, table)
    for arguments, code in ((), 1), (("--repair",), 0), ((), 0):
        done = await asyncio.to_thread(run, tmp_path, "verify", *arguments)
        assert done.returncode == code, (arguments, done)
        assert ("search index" in done.stdout) == (arguments == ("--repair",) or code == 1)
    damage_root_of(path, table)
    assert (await asyncio.to_thread(run, tmp_path, "verify", "--rebuild-index")).returncode == 0
    assert (await asyncio.to_thread(run, tmp_path, "verify")).returncode == 0
    damage_behind_the_header(path)  # the index is made anew when it is opened
    assert (await asyncio.to_thread(run, tmp_path, "verify")).returncode == 0


async def test_verify_of_a_damaged_database_reports_it_without_a_traceback(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path), clock) as server:
        await server.new_inbox("hello")
        await server.deliver(raw_mail("pelican"), "hello")
    path = tmp_path / "postroom.db"
    whole = path.read_bytes()
    for keep in (PAGE_BYTES, 20 * PAGE_BYTES, 50 * PAGE_BYTES):
        path.write_bytes(whole[:keep] + b"\xa5" * (len(whole) - keep))
        done = await asyncio.to_thread(run, tmp_path, "verify")
        assert done.returncode != 0
        assert "database" in done.stdout + done.stderr
    for table in ("messages", "events", "accounts"):
        path.write_bytes(whole)
        damage_root_of(path, table)
        done = await asyncio.to_thread(run, tmp_path, "verify")
        assert (done.returncode, f"{table}: " in done.stdout) == (1, True), done
