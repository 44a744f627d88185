"""A PostgreSQL that goes away is a clear answer now, and works again when it is back."""

import asyncio
import contextlib
import re
import secrets
from pathlib import Path

import psycopg
import pytest

from postroom.accounts import accounts
from postroom.errors import Unavailable
from postroom.storage.database import Database, StorageError, Tx
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.doubles import START
from tests.waiting import until


def select_one(tx: Tx) -> int:
    row = tx.one("select 1 as one")
    assert row is not None
    return int(row["one"])


def kill_all_others(url: str) -> None:
    """Until they are gone: one that closed its connection before the test is not lent again on its way."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


async def until_it_works(db: Database) -> int:
    async def found() -> int | None:
        with contextlib.suppress(Unavailable):
            return await db.write(select_one)
        return None

    return await until(found)


async def test_broken_connections_are_replaced(postgres_url: str, tmp_path: Path) -> None:
    db = await open_database(settings(tmp_path, DATABASE_URL=postgres_url), START)
    assert await db.write(select_one) == await db.read(select_one) == 1
    kill_all_others(postgres_url)
    assert await db.read(select_one) == 1
    assert await until_it_works(db) == 1
    await db.close()


async def test_bells_ring_between_two_processes_and_after_a_broken_connection(
    postgres_url: str, tmp_path: Path
) -> None:
    config = settings(tmp_path, DATABASE_URL=postgres_url)
    here, there = await open_database(config, START), await open_database(config, START)
    subscription = there.listen("mail")
    for _ in range(2):
        assert await subscription.wait(60)  # whoever has just connected hears every bell once
        while await subscription.wait(0.3):
            pass
        here.ring("mail")
        assert await subscription.wait(60)
        kill_all_others(postgres_url)
    await here.close()
    await there.close()


async def test_a_server_that_cannot_be_reached_stops_the_start_with_the_settings_name(tmp_path: Path) -> None:
    config = settings(tmp_path, DATABASE_URL=f"postgresql://nobody@/x?host={tmp_path}")
    with pytest.raises(StorageError, match="POSTROOM_DATABASE_URL"):
        await open_database(config, START)


async def add_two_accounts(db: Database) -> list[str]:
    return [(await db.write(accounts.add, name, "free", START)).id for name in ("one", "two")]


async def test_writes_that_lock_rows_in_opposite_order_all_succeed(postgres_url: str, tmp_path: Path) -> None:
    db = await open_database(settings(tmp_path, DATABASE_URL=postgres_url), START)
    ids = await add_two_accounts(db)

    def count_both(tx: Tx, order: int) -> None:
        for account_id in ids[::order]:
            accounts.change_inbox_count(tx, account_id, +1)

    await asyncio.gather(*(db.write(count_both, (-1) ** number) for number in range(200)))
    assert [account.inbox_count for account in await db.read(accounts.list_all)] == [200, 200]
    await db.close()


async def test_a_write_waits_for_a_row_that_another_node_holds(postgres_url: str, tmp_path: Path) -> None:
    db = await open_database(settings(tmp_path, DATABASE_URL=postgres_url), START)
    one, two = await add_two_accounts(db)
    with psycopg.connect(postgres_url) as other_node:
        other_node.execute("update accounts set inbox_count = 5 where id = %s", (one,))
        waiting = asyncio.create_task(db.write(accounts.change_inbox_count, one, +1))
        await asyncio.sleep(0.2)  # longer than a batch waits for a lock
        assert not waiting.done()
        other_node.commit()
    await waiting
    await db.write(accounts.change_inbox_count, two, +1)
    assert [account.inbox_count for account in await db.read(accounts.list_all)] == [6, 1]
    await db.close()


async def test_a_database_that_is_not_utf8_stops_the_start_with_one_line(
    postgres_url: str, tmp_path: Path
) -> None:
    name = f"latin_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
    url = re.sub(r"/test_\w+\?", f"/{name}?", postgres_url)
    with pytest.raises(StorageError, match="encoding LATIN1") as refused:
        await open_database(settings(tmp_path, DATABASE_URL=url), START)
    assert "\n" not in str(refused.value)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")
