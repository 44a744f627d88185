"""Threads: found by what a mail answers to, in their inbox alone, and counted read or unread."""

import pytest

from postroom.accounts.scope import Scope
from postroom.errors import NotFound
from postroom.inward import into_thread
from postroom.mailbox import inboxes, labels, thread_participants, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.threads import Thread
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def thread_of(db: Database, inbox: Inbox, message_id: str, now: int = START, **fields: str) -> Thread:
    def put(tx: Tx) -> Thread:
        message = put_mail(tx, inbox, message_id, now, message_id=message_id, **fields)
        return threads.get(tx, Scope(inbox.account_id), message.thread_id)

    return await db.write(put)


@pytest.mark.sqlite_alone
async def test_in_reply_to_comes_before_references_and_the_first_known_counts(
    db: Database, inbox: Inbox
) -> None:
    one, two = await thread_of(db, inbox, "<1@x>"), await thread_of(db, inbox, "<2@x>")

    async def find(in_reply_to: list[str], references: list[str]) -> str | None:
        found = await db.read(into_thread.resolve, inbox.id, in_reply_to, references)
        return found.id if found else None

    assert await find(["<1@x>"], ["<2@x>"]) == one.id
    assert await find(["<unknown@x>"], ["<other@x>", "<2@x>", "<1@x>"]) == two.id
    assert await find([], []) is None


@pytest.mark.sqlite_alone
async def test_a_thread_of_another_inbox_is_never_joined(db: Database, inbox: Inbox) -> None:
    await thread_of(db, inbox, "<1@x>")
    other = await db.write(make_inbox, "other", inbox.account_id)
    assert await db.read(into_thread.resolve, other.id, ["<1@x>"], []) is None


@pytest.mark.sqlite_alone
async def test_only_who_reaches_the_inbox_finds_its_thread(db: Database, inbox: Inbox) -> None:
    thread = await thread_of(db, inbox, "<1@x>")
    mine = inbox.account_id
    for scope in (Scope(mine), Scope(mine, inbox_id=inbox.id)):
        assert (await db.read(threads.get, scope, thread.id)).id == thread.id
    for scope in (Scope("acc_other"), Scope(mine, inbox_id="inb_other"), Scope(mine, pod_id="pod_other")):
        with pytest.raises(NotFound):
            await db.read(threads.get, scope, thread.id)
    with pytest.raises(NotFound):
        await db.read(threads.get, Scope(mine), "thr_nonsense")


@pytest.mark.sqlite_alone
async def test_read_and_unread_are_counted_once_however_often_they_are_set(
    db: Database, inbox: Inbox
) -> None:
    first = await thread_of(db, inbox, "<1@x>", START)
    second = await thread_of(db, inbox, "<2@x>", START + 1)

    async def listed(is_read: bool | None) -> tuple[list[str], int]:
        page, total = await db.read(threads.list_of_inbox, inbox.id, is_read, 10, 0)
        return [thread.id for thread in page], total

    def mark_read(tx: Tx, scope: Scope, thread_id: str) -> Thread:
        return threads.mark_read(tx, threads.get(tx, scope, thread_id), True)

    assert await listed(None) == ([second.id, first.id], 2)
    assert await listed(False) == ([second.id, first.id], 2)
    for _ in range(2):
        marked = await db.write(mark_read, Scope(inbox.account_id), first.id)
        assert marked.is_read
    assert await listed(True) == ([first.id], 1)
    assert await listed(False) == ([second.id], 1)
    for _ in range(2):
        await db.write(threads.mark_read, marked, False)
    assert await listed(False) == ([second.id, first.id], 2)
    assert await listed(True) == ([], 0)


@pytest.mark.sqlite_alone
async def test_an_answer_makes_its_thread_newest_and_unread(db: Database, inbox: Inbox) -> None:
    first = await thread_of(db, inbox, "<1@x>", START)
    await thread_of(db, inbox, "<2@x>", START + 1)
    await db.write(threads.mark_read, first, True)
    grown = await thread_of(db, inbox, "<3@x>", START + 2, in_reply_to="<1@x>")
    assert (grown.id, grown.message_count, grown.last_message_at) == (first.id, 2, START + 2)
    assert not grown.is_read
    page, _ = await db.read(threads.list_of_inbox, inbox.id, None, 1, 0)
    assert page == [grown]


@pytest.mark.sqlite_alone
async def test_participants_are_kept_once_a_thread(db: Database, inbox: Inbox) -> None:
    thread = await thread_of(db, inbox, "<1@x>", cc="carol@x.example")
    await db.write(
        thread_participants.add_all, [(thread.id, "carol@x.example"), (thread.id, "dan@x.example")]
    )
    for address, is_known in (("carol@x.example", True), ("dan@x.example", True), ("eve@x.example", False)):
        assert await db.read(thread_participants.is_one, thread.id, address) is is_known


async def test_threads_of_a_deleted_inbox_are_listed_no_more_from_that_moment(
    db: Database, inbox: Inbox
) -> None:
    gone = await thread_of(db, inbox, "<1@x>")
    other = await db.write(make_inbox, "other", inbox.account_id)
    kept = await thread_of(db, other, "<2@x>")
    scope = Scope(inbox.account_id)
    for thread in (gone, kept):
        await db.write(labels.change, thread, ["Later"], [], START)
    await db.write(inboxes.remove, scope, inbox.id, START)
    for within in (scope, Scope(inbox.account_id, inbox.pod_id)):
        for is_read in (None, False):
            for label in (None, "later"):
                found, total = await db.read(threads.list_within, within, is_read, label, 50, 0)
                assert ([thread.id for thread in found], total) == ([kept.id], 1), (is_read, label)
