"""The contract of a database, the same on SQLite and PostgreSQL."""

import asyncio
from pathlib import Path

import pytest

from postroom.errors import Unavailable
from postroom.storage import bells
from postroom.storage.database import Database, Overdue, Row, Tx
from postroom.storage.engines.postgres import open_postgres
from postroom.storage.engines.sqlite import open_sqlite
from tests.doubles import START
from tests.storage.test_postgres_nodes import until_it_hears


def make_table(tx: Tx) -> None:
    tx.run("create table jottings (name text primary key, number bigint, content bytea)")


def add(tx: Tx, name: str, number: int = 0, content: bytes = b"") -> str:
    tx.run(
        "insert into jottings (name, number, content) values (:name, :number, :content)",
        name=name,
        number=number,
        content=content,
    )
    return name


def names(tx: Tx) -> list[str]:
    return [row["name"] for row in tx.all("select name from jottings order by name")]


def one(tx: Tx, name: str) -> Row | None:
    return tx.one("select * from jottings where name = :name", name=name)


@pytest.fixture
async def notes(db: Database) -> Database:
    await db.write(make_table)
    return db


async def test_a_write_returns_the_functions_result_and_is_read_back(notes: Database) -> None:
    assert await notes.write(add, "a", number=2**60, content=b"\x00\xff'") == "a"
    row = await notes.read(one, "a")
    assert row is not None
    assert (row["number"], bytes(row["content"])) == (2**60, b"\x00\xff'")


async def test_no_row_is_none_and_changes_are_counted(notes: Database) -> None:
    assert await notes.read(one, "missing") is None
    await notes.write(add, "a")
    await notes.write(add, "b")
    assert await notes.write(lambda tx: tx.run("update jottings set number = 1")) == 2
    assert await notes.write(lambda tx: tx.run("delete from jottings where name = :name", name="nobody")) == 0


async def test_rows_without_names_have_their_columns_in_order(notes: Database) -> None:
    await notes.write(add, "a", number=7, content=b"x")
    found = await notes.read(lambda tx: tx.tuples("select content, number, name from jottings"))
    assert [(bytes(content), number, name) for content, number, name in found] == [(b"x", 7, "a")]
    nothing = await notes.read(lambda tx: tx.tuples("select name from jottings where name = :name", name="b"))
    assert nothing == []


async def test_the_version_changes_with_every_write_also_of_others_and_with_no_read(tmp_path: Path) -> None:
    """What is remembered of a database that tells none is read again each time."""
    here, there = (open_sqlite(tmp_path / "postroom.db", START) for _ in range(2))
    try:
        await here.write(make_table)
        versions = [here.version()]
        assert await here.read(names) == []
        assert here.version() == versions[0]
        for database, name in ((here, "a"), (there, "b")):
            await database.write(add, name)
            versions.append(here.version())
            assert here.version() == versions[-1]
        assert len(set(versions)) == 3
    finally:
        await here.close()
        await there.close()


async def test_a_function_that_raises_changes_nothing_and_its_error_reaches_the_caller(
    notes: Database,
) -> None:
    def add_then_fail(tx: Tx) -> None:
        add(tx, "half")
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await notes.write(add_then_fail)
    assert await notes.read(names) == []


async def test_one_failing_caller_never_undoes_another_in_the_same_commit(notes: Database) -> None:
    def add_or_fail(tx: Tx, number: int) -> str:
        name = add(tx, f"{number:03}")
        if number % 3 == 0:
            raise ValueError(name)
        return name

    outcomes = await asyncio.gather(
        *(notes.write(add_or_fail, n) for n in range(200)), return_exceptions=True
    )

    expected = [f"{n:03}" for n in range(200) if n % 3]
    assert [outcome for outcome in outcomes if isinstance(outcome, str)] == expected
    assert await notes.read(names) == expected


async def test_a_broken_statement_fails_its_own_caller_alone(notes: Database) -> None:
    def broken(tx: Tx) -> None:
        add(tx, "never")
        tx.run("insert into no_such_table values (1)")

    calls = [notes.write(broken), notes.write(add, "a"), notes.write(broken), notes.write(add, "b")]
    first, second, third, fourth = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, Exception)
    assert isinstance(third, Exception)
    assert (second, fourth) == ("a", "b")
    assert await notes.read(names) == ["a", "b"]


async def test_a_conflict_is_seen_by_exactly_all_but_one_of_many_callers(notes: Database) -> None:
    def claim(tx: Tx) -> int:
        return tx.run("insert into jottings (name) values ('prize') on conflict (name) do nothing")

    assert sum(await asyncio.gather(*(notes.write(claim) for _ in range(50)))) == 1


async def test_concurrent_increments_are_all_counted(notes: Database) -> None:
    await notes.write(add, "counter")

    def increment(tx: Tx) -> None:
        tx.run("update jottings set number = number + 1 where name = 'counter'")

    await asyncio.gather(*(notes.write(increment) for _ in range(300)))
    row = await notes.read(one, "counter")
    assert row is not None
    assert row["number"] == 300


async def test_functions_that_lock_rows_in_opposite_order_both_succeed(notes: Database) -> None:
    await notes.write(add, "left")
    await notes.write(add, "right")

    def touch(tx: Tx, first: str, second: str) -> None:
        for name in (first, second):
            tx.run("update jottings set number = number + 1 where name = :name", name=name)

    orders = [("left", "right"), ("right", "left")] * 40
    await asyncio.gather(*(notes.write(touch, *order) for order in orders))
    row = await notes.read(one, "left")
    assert row is not None
    assert row["number"] == 80


async def test_percent_signs_colons_and_quotes_in_values_and_sql_are_taken_as_they_are(
    notes: Database,
) -> None:
    await notes.write(add, "100% :name 'x' ::text")
    found = await notes.read(lambda tx: tx.all("select name from jottings where name like '100%'"))
    assert [row["name"] for row in found] == ["100% :name 'x' ::text"]


def count_for_hours(tx: Tx) -> Row | None:
    return tx.one(
        "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1000000000000)"
        " select count(*) as total from numbers"
    )


async def test_a_long_read_is_stopped_within_its_statement_and_the_next_one_is_answered(
    notes: Database, database_url: str
) -> None:
    await notes.write(add, "a")
    for _ in range(3):  # more than there are threads for long reads
        with pytest.raises(Overdue):
            await notes.read_long(count_for_hours, 0.05)
    assert await notes.read_long(names, 60) == ["a"]
    if database_url:
        still_running = (
            "select count(*) as total from pg_stat_activity where query like 'with recursive numbers%'"
        )
        row = await notes.read(lambda tx: tx.one(f"{still_running} and state = 'active'"))
        assert row is not None
        assert row["total"] == 0


async def test_a_cancelled_caller_leaves_the_writer_working(notes: Database) -> None:
    task = asyncio.create_task(notes.write(add, "abandoned"))
    await asyncio.sleep(0)
    task.cancel()
    assert await notes.write(add, "next") == "next"


async def test_a_bell_of_a_transaction_rings_after_its_commit_and_never_without_one(
    notes: Database, database_url: str
) -> None:
    def add_and_ring(tx: Tx, name: str) -> None:
        add(tx, name)
        tx.ring(f"bell-{name}")

    def add_and_fail(tx: Tx, name: str) -> None:
        add_and_ring(tx, name)
        raise ValueError(name)

    if database_url:  # there who has just connected hears every bell once
        there = await open_postgres(database_url, START)
        await until_it_hears(notes, there)
        await there.close()
    ears = {name: notes.listen(f"bell-{name}") for name in ("a", "b", "c")}
    together = (
        notes.write(add_and_ring, "a"),
        notes.write(add_and_fail, "b"),
        notes.write(add_and_ring, "c"),
    )
    await asyncio.gather(*together, return_exceptions=True)
    assert await notes.read(names) == ["a", "c"]
    assert await ears["a"].wait(60)
    assert await ears["c"].wait(60)
    assert not await ears["b"].wait(0)


async def test_a_ring_wakes_every_ear_and_one_that_came_before_the_wait_is_not_lost(
    db: Database, database_url: str
) -> None:
    if database_url:  # there who has just connected hears every bell once
        there = await open_postgres(database_url, START)
        await until_it_hears(db, there)
        await there.close()
    first, second, other = db.listen("mail"), db.listen("mail"), db.listen("events")
    db.ring("mail")
    assert await first.wait(60)
    assert await second.wait(60)
    assert not await other.wait(0.05)
    assert not await first.wait(0.05)


@pytest.mark.sqlite_alone
async def test_long_waits_end_together_and_no_ring_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, ends = asyncio.get_running_loop(), list[float]()
    monkeypatch.setattr(bells, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(bells, "MOMENTS_A_SECOND", 20)
    began = loop.time()
    waiting = [asyncio.create_task(db.listen("mail").wait(0.05 + number / 1000)) for number in range(3)]
    for each in waiting:
        each.add_done_callback(lambda _: ends.append(loop.time()))
    assert await asyncio.gather(*waiting) == [False, False, False]
    assert max(ends) * 20 // 1 - min(ends) * 20 // 1 <= 1
    assert min(ends) > began
    subscription = db.listen("mail")
    hearing = asyncio.create_task(subscription.wait(60))
    await asyncio.sleep(0)
    db.ring("mail")
    db.ring("mail")
    assert await hearing
    assert not await subscription.wait(0)
    hearing = asyncio.create_task(subscription.wait(60))
    await asyncio.sleep(0)
    hearing.cancel()
    assert (await asyncio.gather(hearing, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    db.ring("mail")
    assert await subscription.wait(60)


async def test_a_closed_ear_is_forgotten(db: Database) -> None:
    subscription = db.listen("mail")
    subscription.close()
    db.ring("mail")
    assert not await subscription.wait(0.01)


async def test_close_finishes_what_was_handed_in_and_then_refuses(notes: Database, tmp_path: Path) -> None:
    writes = [asyncio.create_task(notes.write(add, f"{n:03}")) for n in range(100)]
    await asyncio.sleep(0)
    await notes.close()
    assert await asyncio.gather(*writes) == [f"{n:03}" for n in range(100)]
    with pytest.raises(Unavailable):
        await notes.write(add, "late")
