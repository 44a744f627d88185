"""Many items by one call, and many rows by one statement, the same on SQLite and PostgreSQL."""

import asyncio
import weakref
from typing import Any

import pytest

from postroom.processes import process_metrics
from postroom.storage import group_commit
from postroom.storage.database import ROWS_OF_A_STATEMENT, Database, Row, Tx
from postroom.storage.group_commit import BATCH_LIMIT, WriteQueue
from tests.waiting import until

KIND = "message.counted"
INSERT = "insert into jottings (name, number) values :rows"


class Spoiled(Exception):
    """The item is not good."""


def make_table(tx: Tx) -> None:
    tx.run("create table jottings (name text primary key, number bigint)")


def names(tx: Tx) -> list[str]:
    return [row["name"] for row in tx.all("select name from jottings order by name")]


@pytest.fixture
async def notes(db: Database) -> Database:
    await db.write(make_table)
    return db


async def test_items_that_wait_together_are_one_call_with_a_result_for_each(notes: Database) -> None:
    calls: list[list[int]] = []

    def add(tx: Tx, numbers: list[int]) -> list[str]:
        calls.append(numbers)
        tx.many(INSERT, [(f"{number:02}", number) for number in numbers])
        return [f"added {number}" for number in numbers]

    results = await asyncio.gather(*(notes.write_together(add, number) for number in range(50)))

    assert results == [f"added {number}" for number in range(50)]
    assert sorted(number for call in calls for number in call) == list(range(50))
    assert len(calls) < 50
    assert await notes.read(names) == [f"{number:02}" for number in range(50)]


async def test_writes_of_turns_that_follow_each_other_go_to_the_writer_together(
    notes: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over: list[int] = []

    def record(writes: WriteQueue, gathered: Any) -> None:
        handed_over.append(len(gathered.jobs))
        hand_over(writes, gathered)

    async def write(turn: int) -> int:
        for _ in range(turn):
            await asyncio.sleep(0)
        return await notes.write_together(lambda tx, turns: turns, turn)

    hand_over = WriteQueue._hand_over
    monkeypatch.setattr(WriteQueue, "_hand_over", record)
    monkeypatch.setattr(group_commit, "TURNS_SECONDS", 3_600.0)
    turns = range(BATCH_LIMIT + 20)

    assert await asyncio.gather(*map(write, turns)) == list(turns)
    assert handed_over == [BATCH_LIMIT, 20]


class Item:
    """What is handed to the writer."""


@pytest.mark.parametrize("others", [0, 3])
async def test_an_item_that_failed_is_freed_at_once(notes: Database, no_collector: None, others: int) -> None:
    """An error holds the frames that it came through: none of them may hold the error."""

    def refuse(tx: Tx, items: list[Item]) -> list[str]:
        raise Spoiled("all")

    item = Item()
    kept = weakref.ref(item)
    outcomes = await asyncio.gather(
        *(notes.write_together(refuse, each) for each in (item, *(Item() for _ in range(others)))),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [Spoiled] * (others + 1)
    del item, outcomes
    await until(lambda: kept() is None)


async def test_a_spoiled_item_fails_alone_whatever_else_is_in_the_batch(notes: Database) -> None:
    def add_good(tx: Tx, numbers: list[int]) -> list[int]:
        tx.many(INSERT, [(f"{number:02}", number) for number in numbers])
        if 7 in numbers:
            raise Spoiled("seven")
        return numbers

    def add_other(tx: Tx) -> str:
        tx.many(INSERT, [("other", 0)])
        return "other"

    outcomes = await asyncio.gather(
        *(notes.write_together(add_good, number) for number in range(10)),
        notes.write(add_other),
        return_exceptions=True,
    )

    assert [outcome for outcome in outcomes if not isinstance(outcome, Exception)] == [
        *(number for number in range(10) if number != 7),
        "other",
    ]
    assert isinstance(outcomes[7], Spoiled)
    assert await notes.read(names) == [*(f"{number:02}" for number in range(10) if number != 7), "other"]


async def test_a_call_of_shared_items_alone_in_its_batch_fails_item_by_item(notes: Database) -> None:
    def add_even(tx: Tx, numbers: list[int]) -> list[int]:
        tx.many(INSERT, [(f"{number:02}", number) for number in numbers])
        if any(number % 2 for number in numbers):
            raise Spoiled("odd")
        return numbers

    outcomes = await asyncio.gather(
        *(notes.write_together(add_even, number) for number in range(20)), return_exceptions=True
    )

    assert [isinstance(outcome, Spoiled) for outcome in outcomes] == [False, True] * 10
    assert await notes.read(names) == [f"{number:02}" for number in range(0, 20, 2)]


async def test_an_event_counts_once_it_is_committed_however_often_its_function_ran(notes: Database) -> None:
    noted: list[int] = []

    def add_even(tx: Tx, numbers: list[int]) -> list[int]:
        for number in numbers:
            noted.append(number)
            process_metrics.record_event(KIND)
        if any(number % 2 for number in numbers):
            raise Spoiled("odd")
        return numbers

    before = process_metrics.EVENTS.counts().get(KIND, 0)
    await asyncio.gather(
        *(notes.write_together(add_even, number) for number in range(20)), return_exceptions=True
    )
    assert len(noted) > 20
    assert process_metrics.EVENTS.counts()[KIND] - before == 10


async def test_any_number_of_rows_is_inserted_and_those_that_are_new_are_returned(notes: Database) -> None:
    count = 3 * ROWS_OF_A_STATEMENT + 5

    def add(tx: Tx, numbers: range) -> list[Row]:
        return tx.many(
            f"{INSERT} on conflict do nothing returning name",
            [(f"{number:04}", number) for number in numbers],
        )

    assert await notes.write(add, range(0)) == []
    assert len(await notes.write(add, range(10))) == 10
    added = await notes.write(add, range(count))
    assert sorted(row["name"] for row in added) == [f"{number:04}" for number in range(10, count)]
    assert len(await notes.read(names)) == count


async def test_rows_keep_percent_signs_colons_and_bytes_as_they_are(notes: Database) -> None:
    def add(tx: Tx) -> None:
        tx.many(INSERT, [("100% :rows %s ?", 1), ("'; drop table jottings", 2)])

    await notes.write(add)
    assert await notes.read(names) == ["'; drop table jottings", "100% :rows %s ?"]
