"""A node that stands still with rows in its hand, and a database that says nothing more."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from postroom.errors import Unavailable
from postroom.storage import group_commit, lock_waiters
from postroom.storage.database import Database, Tx
from postroom.storage.engines import postgres, postgres_bells
from postroom.storage.engines.postgres import open_postgres
from tests.doubles import START
from tests.lossy_proxy import lossy_proxy
from tests.storage.test_postgres_faults import until_it_works
from tests.storage.test_postgres_nodes import until_it_hears
from tests.unhurried_postgres import USUAL_SESSION_LIMITS, USUAL_WRITER_LIMITS, usual_limits

ROWS = [f"{number:02}" for number in range(40)]


def make_counters(tx: Tx) -> None:
    tx.run("create table counters (name text primary key, number bigint not null)")
    tx.many("insert into counters (name, number) values :rows", [(name, 0) for name in ROWS])


def count(tx: Tx, name: str) -> str:
    tx.run("update counters set number = number + 1 where name = :name", name=name)
    return name


def count_all(tx: Tx, names: list[str]) -> list[str]:
    return [count(tx, name) for name in names]


def numbers(tx: Tx) -> dict[str, int]:
    return {row["name"]: row["number"] for row in tx.all("select name, number from counters")}


@pytest.fixture
async def counters(postgres_url: str) -> AsyncIterator[Database]:
    db = await open_postgres(postgres_url, START)
    await db.write(make_counters)
    yield db
    await db.close()


@contextmanager
def held_row(url: str, name: str, **limits: str) -> Iterator[psycopg.Connection[tuple[str]]]:
    """As by a node that was stopped in mid-transaction: it says nothing, and does not go either."""
    with psycopg.connect(url) as other:
        for setting, value in limits.items():
            other.execute("select set_config(%s, %s, false)", (setting, value))
        other.execute("update counters set number = number + 100 where name = %s", (name,))
        yield other


async def test_who_needs_a_row_that_is_held_keeps_nobody_else_waiting(
    counters: Database, postgres_url: str
) -> None:
    with held_row(postgres_url, "07") as other:
        stuck = [asyncio.create_task(counters.write(count, "07")) for _ in range(10)]
        for name in ROWS:
            if name != "07":
                assert await counters.write(count, name) == name
        assert not any(task.done() for task in stuck)
        other.rollback()
        await asyncio.gather(*stuck)
    assert await counters.read(numbers) == {name: 10 if name == "07" else 1 for name in ROWS}


async def test_of_items_that_are_stored_together_only_those_that_need_the_row_wait(
    counters: Database, postgres_url: str
) -> None:
    with held_row(postgres_url, "07") as other:
        together = {name: asyncio.create_task(counters.write_together(count_all, name)) for name in ROWS}
        free = [task for name, task in together.items() if name != "07"]
        assert await asyncio.gather(*free) == [name for name in ROWS if name != "07"]
        assert not together["07"].done()
        other.rollback()
        assert await together["07"] == "07"
    assert await counters.read(numbers) == dict.fromkeys(ROWS, 1)


def patience(tx: Tx) -> str:
    row = tx.one("select current_setting('lock_timeout') as value")
    assert row is not None
    return str(row["value"])


async def until_patience_is(db: Database, value: str) -> None:
    async with asyncio.timeout(60):
        while await db.write(patience) != value:
            await asyncio.sleep(0.02)


async def test_while_a_row_is_known_to_be_held_the_writer_hardly_waits_for_any(
    counters: Database, postgres_url: str
) -> None:
    usual = postgres.LIMITS_OF_WRITERS["lock_timeout"]
    assert await counters.write(patience) == usual
    with held_row(postgres_url, "07") as other:
        stuck = asyncio.create_task(counters.write(count, "07"))
        await until_patience_is(counters, f"{group_commit.HELD_MILLISECONDS}ms")
        assert not stuck.done()
        other.rollback()
        assert await stuck == "07"
    await until_patience_is(counters, usual)


def settings_of_session(tx: Tx, names: list[str]) -> dict[str, str]:
    rows = tx.all("select name, current_setting(name) as value from pg_settings")
    return {row["name"]: row["value"] for row in rows if row["name"] in names}


def end_own_session(tx: Tx) -> None:
    tx.run("select pg_terminate_backend(pg_backend_pid())")


async def test_every_session_has_the_limits_of_its_kind(postgres_url: str) -> None:
    lock, statement, idle = "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"
    writers, readers, long_readers = USUAL_SESSION_LIMITS
    assert {lock, statement, idle} <= writers.keys()
    assert {statement, idle} <= readers.keys()
    assert idle in long_readers
    with usual_limits():
        db = await open_postgres(postgres_url, START)
        assert await db.read(settings_of_session, [*readers]) == readers
        assert await db.read_long(settings_of_session, 60.0, [*long_readers]) == long_readers
        assert (await db.read_long(settings_of_session, 60.0, [statement]))[statement] != "0"
        assert await db.write(settings_of_session, [*writers]) == writers
        with pytest.raises(Unavailable):
            await db.write(end_own_session)
        await until_it_works(db)
        assert await db.write(settings_of_session, [*writers]) == writers, "as the session before it"
        await db.close()


async def test_a_node_that_stands_still_in_mid_transaction_loses_the_rows_it_holds(
    counters: Database, postgres_url: str
) -> None:
    with held_row(postgres_url, "07", **USUAL_WRITER_LIMITS) as frozen:
        await counters.write(count, "07")
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            frozen.commit()
    assert (await counters.read(numbers))["07"] == 1


async def test_who_waits_too_long_for_a_row_is_told_so(
    counters: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_waiters, "LOCK_WAIT_SECONDS", 0.3)
    with held_row(postgres_url, "07") as other:
        with pytest.raises(Unavailable, match="Another request is changing this"):
            await counters.write(count, "07")
        other.rollback()
    assert (await counters.read(numbers))["07"] == 0


async def test_a_server_that_stops_answers_those_who_wait_for_a_row(
    postgres_url: str, counters: Database
) -> None:
    node = await open_postgres(postgres_url, START)
    with held_row(postgres_url, "07"):
        stuck = [asyncio.create_task(node.write(count, "07")) for _ in range(3)]
        await asyncio.sleep(0.1)
        await node.close()
        outcomes = await asyncio.gather(*stuck, return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)


async def test_a_database_that_swallows_every_byte_is_unavailable_and_works_again_when_it_answers(
    postgres_url: str, counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_bells, "STILL_THERE_SECONDS", 0.2)  # who listens notices before all is well
    with usual_limits(), lossy_proxy(postgres_url) as (proxy, url):
        db = await open_postgres(url, START)
        subscription = db.listen("mail")
        await asyncio.gather(*(db.read(numbers) for _ in range(10)), db.write(count, "01"))
        proxy.swallow()
        calls = [
            *(db.read(numbers) for _ in range(30)),
            *(db.write(count, "02") for _ in range(10)),
            db.look_up(numbers),
        ]
        async with asyncio.timeout(120):
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Unavailable] * len(calls)
        await subscription.wait(0)
        proxy.carry()
        async with asyncio.timeout(120):
            assert await until_available(db) == "03"
            assert (await db.read(numbers))["01"] == 1
            assert await subscription.wait(60)  # whoever listens anew hears every bell once
        await db.close()


async def until_available(db: Database) -> str:
    while True:
        try:
            return await db.write(count, "03")
        except Unavailable:
            await asyncio.sleep(0.05)


async def test_ten_thousand_bells_at_once_are_heard_by_another_node(
    postgres_url: str, counters: Database
) -> None:
    there = await open_postgres(postgres_url, START)
    await until_it_hears(there, counters)
    ears = [there.listen(f"events:acc_{number:026}") for number in range(10_000)]
    counters.ring(*(f"events:acc_{number:026}" for number in range(10_000)))
    async with asyncio.timeout(120):
        assert all([await subscription.wait(120) for subscription in ears])
    await there.close()
