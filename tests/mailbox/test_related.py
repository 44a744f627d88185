"""Threads that belong together although rule 1 keeps them apart, and what a stranger can do to them."""

import itertools

import pytest

from postroom.accounts.scope import Scope
from postroom.mailbox import inboxes, related
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.storage.database import Database, Tx
from postroom.upkeep import inbox_removal
from tests.doubles import START
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


numbers = itertools.count(1)


async def put(db: Database, inbox: Inbox, **fields: str) -> str:
    """The thread of a new mail."""
    number = next(numbers)
    named = {"message_id": f"<own-{number}@x>", **fields}
    message: Message = await db.write(lambda tx: put_mail(tx, inbox, now=START + number, **named))
    return message.thread_id


async def related_to(db: Database, thread_id: str) -> list[str]:
    return (await db.read(related.list_of_threads, [thread_id])).get(thread_id, [])


async def count(db: Database, table: str) -> int:
    def work(tx: Tx) -> int:
        row = tx.one(f"select count(*) as number from {table}")
        return int(row["number"]) if row else 0

    return await db.read(work)


@pytest.mark.sqlite_alone
async def test_an_answer_that_came_before_its_mail_is_related_to_it(db: Database, inbox: Inbox) -> None:
    answer = await put(db, inbox, in_reply_to="<first@x>")
    assert await related_to(db, answer) == []
    first = await put(db, inbox, message_id="<first@x>")
    assert first != answer
    assert await related_to(db, first) == [answer]
    assert await related_to(db, answer) == [first]


@pytest.mark.sqlite_alone
async def test_two_answers_to_a_mail_that_never_came_are_related(db: Database, inbox: Inbox) -> None:
    one = await put(db, inbox, in_reply_to="<never@x>")
    other = await put(db, inbox, references="<before@x> <never@x>")
    assert one != other
    assert await related_to(db, one) == [other]
    assert await related_to(db, other) == [one]


@pytest.mark.sqlite_alone
async def test_a_mail_that_names_two_threads_joins_one_and_relates_it_to_the_other(
    db: Database, inbox: Inbox
) -> None:
    one = await put(db, inbox, message_id="<1@x>")
    two = await put(db, inbox, message_id="<2@x>")
    assert await put(db, inbox, in_reply_to="<1@x>", references="<2@x> <1@x>") == one
    assert await related_to(db, one) == [two]
    assert await related_to(db, two) == [one]


@pytest.mark.sqlite_alone
async def test_mail_in_its_order_relates_nothing_and_keeps_no_names(db: Database, inbox: Inbox) -> None:
    first = await put(db, inbox, message_id="<1@x>")
    await put(db, inbox, message_id="<2@x>", in_reply_to="<1@x>")
    await put(db, inbox, in_reply_to="<2@x>", references="<1@x> <2@x>")
    await put(db, inbox)
    assert await related_to(db, first) == []
    assert await count(db, "named_ids") == 0


@pytest.mark.sqlite_alone
async def test_nothing_is_related_across_inboxes(db: Database, inbox: Inbox) -> None:
    other = await db.write(make_inbox, "other")
    answer = await put(db, inbox, in_reply_to="<first@x>")
    elsewhere = await put(db, other, message_id="<first@x>")
    assert await related_to(db, answer) == []
    assert await related_to(db, elsewhere) == []


@pytest.mark.sqlite_alone
async def test_a_stranger_who_names_thousands_of_ids_keeps_few_rows(db: Database, inbox: Inbox) -> None:
    for mail in range(20):
        names = " ".join(f"<{mail}-{number}@x>" for number in range(500))
        await put(db, inbox, message_id=f"<m{mail}@x>", in_reply_to="<m0@x>", references=names)
    assert await count(db, "named_ids") <= 20 * related.NAMES_PER_MAIL


@pytest.mark.sqlite_alone
async def test_a_thread_keeps_so_many_names_and_a_name_so_many_threads(
    db: Database, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(related, "NAMES_PER_THREAD", 5)
    monkeypatch.setattr(related, "THREADS_PER_NAME", 3)
    monkeypatch.setattr(related, "RELATED_PER_THREAD", 2)
    first = await put(db, inbox, message_id="<m@x>")
    for mail in range(3):
        names = " ".join(f"<{mail}-{number}@y>" for number in range(4))
        await put(db, inbox, in_reply_to="<m@x>", references=names)
    assert await count(db, "named_ids") == 5
    for _ in range(6):
        await put(db, inbox, in_reply_to="<popular@x>")
    assert await count(db, "named_ids") == 5 + 3
    popular = await put(db, inbox, message_id="<popular@x>")
    assert len(await related_to(db, popular)) == 2
    assert await related_to(db, first) == []


async def test_what_is_kept_of_threads_goes_with_their_inbox(db: Database, inbox: Inbox) -> None:
    await put(db, inbox, in_reply_to="<never@x>")
    await put(db, inbox, in_reply_to="<never@x>")
    assert await count(db, "related_threads") == 2
    await db.write(lambda tx: inboxes.remove(tx, Scope(inbox.account_id), inbox.id, START))
    while await db.write(inbox_removal.remove_some, START, 100) is not None:
        pass
    assert await count(db, "named_ids") == await count(db, "related_threads") == 0


@pytest.mark.sqlite_alone
async def test_a_thread_that_is_forgotten_is_related_to_nothing_in_either_direction(
    db: Database, inbox: Inbox
) -> None:
    one = await put(db, inbox, in_reply_to="<never@x>")
    other = await put(db, inbox, in_reply_to="<never@x>")
    await db.write(related.forget_threads, [one])
    assert await related_to(db, other) == []
    assert await count(db, "related_threads") == 0


@pytest.mark.sqlite_alone
async def test_mail_that_was_not_let_in_relates_nothing(db: Database, inbox: Inbox) -> None:
    await put(db, inbox, message_id="<kept-out@x>")
    await db.write(lambda tx: tx.run("update messages set direction = 'blocked', thread_id = ''"))
    answer = await put(db, inbox, in_reply_to="<kept-out@x>")
    assert await related_to(db, answer) == []
    assert await count(db, "related_threads") == 0
