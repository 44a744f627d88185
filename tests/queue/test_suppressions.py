"""Addresses that an account does not send to: its own, each with its first reason."""

import pytest

from postroom.accounts import accounts
from postroom.errors import NotFound
from postroom.queue import suppressions
from postroom.queue.suppressions import BOUNCE, COMPLAINT, MANUAL, Suppression
from postroom.storage.database import Database
from tests.doubles import START


@pytest.fixture
async def owners(db: Database) -> list[str]:
    return [(await db.write(accounts.add, name, "free", START)).id for name in ("mine", "theirs")]


@pytest.mark.sqlite_alone
async def test_an_address_keeps_its_first_reason(db: Database, owners: list[str]) -> None:
    first = await db.write(suppressions.add, owners[0], "bob@x.example", BOUNCE, START)
    again = await db.write(suppressions.add, owners[0], "bob@x.example", COMPLAINT, START + 1)
    assert first == again == Suppression("bob@x.example", BOUNCE, START)


@pytest.mark.sqlite_alone
async def test_a_suppressed_address_is_found_for_its_account_alone(db: Database, owners: list[str]) -> None:
    mine, theirs = owners
    await db.write(suppressions.add, mine, "bob@x.example", COMPLAINT, START)
    asked = [(theirs, "bob@x.example"), (mine, "carol@x.example"), (mine, "bob@x.example")]
    assert await db.read(suppressions.find_all, asked) == {(mine, "bob@x.example"): COMPLAINT}
    assert await db.read(suppressions.find_all, []) == {}


@pytest.mark.sqlite_alone
async def test_the_list_is_newest_first_with_the_total_of_the_account(
    db: Database, owners: list[str]
) -> None:
    for number, name in enumerate(("a", "b", "c")):
        await db.write(suppressions.add, owners[0], f"{name}@x.example", MANUAL, START + number)
    await db.write(suppressions.add, owners[1], "d@x.example", MANUAL, START)
    page, total = await db.read(suppressions.list_of_account, owners[0], 2, 1)
    assert ([each.address for each in page], total) == (["b@x.example", "a@x.example"], 3)


@pytest.mark.sqlite_alone
async def test_an_address_is_taken_off_by_its_account_alone(db: Database, owners: list[str]) -> None:
    await db.write(suppressions.add, owners[0], "bob@x.example", MANUAL, START)
    with pytest.raises(NotFound):
        await db.write(suppressions.remove, owners[1], "bob@x.example")
    await db.write(suppressions.remove, owners[0], "bob@x.example")
    assert await db.read(suppressions.find, owners[0], "bob@x.example") is None
    with pytest.raises(NotFound):
        await db.write(suppressions.remove, owners[0], "bob@x.example")
