"""SQLite's log is copied into the database while the server runs."""

import asyncio
from pathlib import Path

from postroom.storage.database import Tx
from postroom.storage.engines.sqlite import open_sqlite
from tests.doubles import START

BYTES = 2_000_000


def add_much(tx: Tx) -> None:
    tx.run("create table notes (content blob)")
    tx.run("insert into notes (content) values (:content)", content=b"x" * BYTES)


async def test_what_was_written_reaches_the_database_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "postroom.db"
    db = open_sqlite(path, START)
    try:
        await db.write(add_much)
        async with asyncio.timeout(120):
            while path.stat().st_size < BYTES:
                await asyncio.sleep(0.05)
    finally:
        await db.close()
    assert not (tmp_path / "postroom.db-wal").exists()
