"""A claim holds for a lease: nobody else gets the work meanwhile, and somebody does when it has ended."""

import pytest

from postroom.clock import SECOND
from postroom.inward import examine, review_answers
from postroom.inward.examine import Examination
from postroom.inward.review_answers import ReviewAnswer
from postroom.queue import leases
from postroom.queue.leases import LEASE, RENEWAL_SECONDS, WorkTable
from postroom.storage.database import Database, Tx
from tests.doubles import START


def add_examinations(tx: Tx) -> None:
    examine.add_all(tx, [Examination(key, "", "", "", START + late) for late, key in enumerate("abc")])


def add_answers(tx: Tx) -> None:
    empty = ("msg_1", "reviewer@example.com", "", "", False, "", "", "", b"")
    review_answers.add_all(tx, [ReviewAnswer(key, *empty, START + late) for late, key in enumerate("abc")])


@pytest.fixture(params=["examinations", "answers"])
async def table(request: pytest.FixtureRequest, db: Database) -> WorkTable:
    """With three pieces of work, one due a moment after the other."""
    is_answers = request.param == "answers"
    await db.write(add_answers if is_answers else add_examinations)
    return review_answers.ANSWERS if is_answers else examine.EXAMINATIONS


async def claim(db: Database, table: WorkTable, limit: int, now: int) -> list[str]:
    return [row[table.key] for row in await db.write(leases.claim_due, table, limit, now)]


@pytest.mark.sqlite_alone
async def test_what_is_due_is_claimed_in_its_order_and_once(db: Database, table: WorkTable) -> None:
    assert await claim(db, table, 10, START - 1) == []
    assert await claim(db, table, 1, START + 1) == ["a"]
    assert await claim(db, table, 10, START + 1) == ["b"]
    assert await claim(db, table, 10, START + 1) == []


async def test_a_claim_that_nobody_renews_ends_with_its_lease(db: Database, table: WorkTable) -> None:
    assert await claim(db, table, 10, START) == ["a"]
    await db.write(leases.renew, table, ["a"], START + SECOND)
    assert await claim(db, table, 10, START + LEASE) == ["b", "c"]
    assert await claim(db, table, 10, START + LEASE + SECOND) == ["a"]


@pytest.mark.sqlite_alone
async def test_work_that_is_done_is_removed_by_one_alone(db: Database, table: WorkTable) -> None:
    assert await db.write(leases.remove, table, "a")
    assert not await db.write(leases.remove, table, "a")
    assert await claim(db, table, 10, START + LEASE) == ["b", "c"]


def test_a_lease_outlives_two_renewals_that_fail() -> None:
    assert LEASE >= 3 * RENEWAL_SECONDS * SECOND
