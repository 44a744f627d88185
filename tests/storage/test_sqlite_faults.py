"""SQLite on a disk that has no room: nothing is lost, the answer says to try again, and later it works."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.accounts import accounts
from postroom.accounts.accounts import Account
from postroom.errors import Unavailable
from postroom.storage.database import Tx
from postroom.storage.engines.sqlite import SqliteDatabase, open_sqlite
from tests.doubles import START


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
