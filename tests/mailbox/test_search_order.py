"""Search gives the newest first by when a mail came, however late it was indexed, on every page."""

import random

import pytest

from postroom.accounts.scope import Scope
from postroom.mailbox import documents, inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.search import indexing, message_search, removals
from postroom.storage.database import Database, Tx
from postroom.upkeep import deletion
from postroom_mail.search.query import parse
from tests.doubles import START
from tests.mailbox.test_indexing import DOMAIN, index, new_inbox, store

MINUTE = 60_000


def read_page(tx: Tx, inbox: Inbox, q: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
    question = message_search.ask(tx, Scope(inbox.account_id), parse(q), DOMAIN)
    page = message_search.find(tx, question, cursor, limit, Links("", 0, b""), lambda: False)
    return [documents.decode(found.message).subject for found in page.found], page.next


async def all_pages(db: Database, inbox: Inbox, q: str, limit: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page, cursor = await db.read(read_page, inbox, q, cursor, limit)
        found += page
        if cursor is None:
            return found


def let_in(tx: Tx, message_id: str, now: int) -> None:
    """As a release does: it came when it was let in."""
    removals.enqueue_removed(tx, [message_id])
    tx.run("update messages set created_at = :now where id = :id", now=now, id=message_id)
    indexing.enqueue_all(tx, [message_id])


@pytest.mark.sqlite_alone
async def test_mail_that_is_indexed_late_stands_where_it_came(db: Database) -> None:
    inbox = await new_inbox(db)
    await db.write(store, inbox, "Report 3", now=START + 3 * MINUTE)
    await index(db)
    await db.write(store, inbox, "Report 1", now=START + 1 * MINUTE)
    await index(db)
    await db.write(store, inbox, "Report 4", now=START + 4 * MINUTE)
    await db.write(store, inbox, "Report 2", now=START + 2 * MINUTE)
    await index(db)
    for limit in (1, 2, 3, 100):
        found = await all_pages(db, inbox, "report", limit)
        assert found == ["Report 4", "Report 3", "Report 2", "Report 1"], limit


async def test_mail_that_was_let_in_stands_where_it_was_let_in(db: Database) -> None:
    inbox = await new_inbox(db)
    first = await db.write(store, inbox, "Report 0", now=START)
    for number in (1, 2):
        await db.write(store, inbox, f"Report {number}", now=START + number * MINUTE)
    await index(db)
    await db.write(let_in, first, START + 10 * MINUTE)
    await index(db)
    await db.write(store, inbox, "Report 3", now=START + 20 * MINUTE)
    await index(db)
    for limit in (1, 2, 100):
        found = await all_pages(db, inbox, "report", limit)
        assert found == ["Report 3", "Report 0", "Report 2", "Report 1"], limit


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("seed", range(2))
async def test_any_order_of_indexing_gives_the_order_of_arrival(db: Database, seed: int) -> None:
    chance = random.Random(seed)
    inbox = await new_inbox(db)
    other = await db.write(inboxes.add, inbox.account_id, "other", None, None, DOMAIN, START)
    moments = {f"Report {number} n{number % 3}": START + number * MINUTE for number in range(30)}
    waiting = chance.sample(sorted(moments), len(moments))
    stored: dict[str, str] = {}
    while waiting:
        for subject in [waiting.pop() for _ in range(min(len(waiting), chance.randint(1, 8)))]:
            owner = chance.choice((inbox, other))
            stored[subject] = await db.write(store, owner, subject, now=moments[subject])
        if chance.random() < 0.3:
            subject = chance.choice(sorted(stored))
            moments[subject] = START + (100 + len(stored)) * MINUTE + chance.randint(1, 100)
            await db.write(let_in, stored[subject], moments[subject])
        await index(db)
    newest_first = sorted(moments, key=lambda subject: moments[subject], reverse=True)
    for q, wanted in (
        ("report", newest_first),
        ("n1", [subject for subject in newest_first if subject.endswith("n1")]),
    ):
        for limit in (1, 7, 100):
            assert await all_pages(db, inbox, q, limit) == wanted, (q, limit)


@pytest.mark.sqlite_alone
async def test_many_that_came_late_are_found_by_the_index(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "LOOKED_AT_EACH", 50)
    inbox = await new_inbox(db)
    await db.write(store, inbox, "Report newest", now=START + 10_000 * MINUTE)
    await index(db)
    count = message_search.LOOKED_AT_EACH + 50

    def import_all(tx: Tx) -> None:
        for number in range(count):
            store(tx, inbox, f"Report {number}", now=START + number * MINUTE)

    await db.write(import_all)
    await index(db)
    wanted = ["Report newest", *(f"Report {number}" for number in reversed(range(count)))]
    assert await all_pages(db, inbox, "report", 100) == wanted
    assert await all_pages(db, inbox, "newest", 1) == ["Report newest"]


async def test_a_page_goes_on_where_a_message_was_that_is_gone(db: Database) -> None:
    inbox = await new_inbox(db)
    for number in (4, 2, 0):
        await db.write(store, inbox, f"Report {number}", now=START + number * MINUTE)
        await index(db)
    late = await db.write(store, inbox, "Report 1", now=START + 1 * MINUTE)
    await db.write(store, inbox, "Report 3", now=START + 3 * MINUTE)
    await index(db)
    page, cursor = await db.read(read_page, inbox, "report", None, 2)
    assert (page, cursor is not None) == (["Report 4", "Report 3"], True)
    assert cursor is not None
    await db.write(deletion.erase_all, [cursor])
    await index(db)
    assert await db.read(read_page, inbox, "report", cursor, 2) == (["Report 2", "Report 1"], late)
    await db.write(deletion.erase_all, [late])
    await index(db)
    assert await db.read(read_page, inbox, "report", late, 2) == (["Report 0"], None)
    rows = await db.read(lambda tx: tx.all("select * from search_latecomers"))
    assert len(rows) == 2
