"""Labels: in the order of their letters, on lists in the order of the last message."""

from collections.abc import Callable, Sequence

import pytest

from postroom.accounts.scope import Scope
from postroom.errors import BadRequest
from postroom.fields import Span
from postroom.limits import LABELS_OF_A_THREAD
from postroom.mailbox import inboxes, labels, threads, trash
from postroom.mailbox.folders import label_changes
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.threads import Thread
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.mailbox.test_threads import thread_of
from tests.refusals import refuses
from tests.stored import make_inbox, put_mail


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def labelled(db: Database, inbox: Inbox) -> list[str]:
    def listed(tx: Tx) -> list[Thread]:
        return threads.list_within(tx, Scope(inbox.account_id), None, "urgent", 10, 0)[0]

    return [thread.id for thread in await db.read(listed)]


@pytest.mark.sqlite_alone
async def test_the_list_of_a_label_has_the_newest_first_also_after_a_mail_that_came_late(
    db: Database, inbox: Inbox
) -> None:
    older = await thread_of(db, inbox, "<1@x>", START)
    newer = await thread_of(db, inbox, "<2@x>", START + 10)
    for thread in (older, newer):
        await db.write(labels.change, thread, ["Urgent"], [], START)
    assert await labelled(db, inbox) == [newer.id, older.id]
    await thread_of(db, inbox, "<3@x>", START - 10, in_reply_to="<2@x>")
    assert await labelled(db, inbox) == [newer.id, older.id]
    await thread_of(db, inbox, "<4@x>", START + 20, in_reply_to="<1@x>")
    assert await labelled(db, inbox) == [older.id, newer.id]


async def test_a_deleted_message_gives_its_place_back(db: Database, inbox: Inbox) -> None:
    older = await thread_of(db, inbox, "<1@x>", START)
    newer = await thread_of(db, inbox, "<2@x>", START + 10)
    await thread_of(db, inbox, "<3@x>", START + 20, in_reply_to="<1@x>")
    for thread in (older, newer):
        await db.write(labels.change, thread, ["Urgent"], [], START)

    def delete_newest(tx: Tx) -> None:
        tx.run("delete from messages where rfc_message_id = '<3@x>'")
        threads.take_away(tx, older.id, 1)

    await db.write(delete_newest)
    assert await labelled(db, inbox) == [newer.id, older.id]


@pytest.mark.sqlite_alone
async def test_labels_of_a_thread_are_in_the_order_of_their_letters_whatever_their_case(
    db: Database, inbox: Inbox
) -> None:
    thread = await thread_of(db, inbox, "<1@x>")
    found = await db.write(labels.change, thread, ["beta", "Zeta", "Alpha", "gamma"], [], START)
    assert found == ["Alpha", "beta", "gamma", "Zeta"]
    assert await db.read(labels.of_threads, [thread.id]) == {thread.id: found}


@pytest.mark.sqlite_alone
async def test_what_was_set_and_removed_is_told_once_and_only_where_it_changed_something(
    db: Database, inbox: Inbox
) -> None:
    thread = await thread_of(db, inbox, "<1@x>")
    await thread_of(db, inbox, "<2@x>", START + 10, in_reply_to="<1@x>")
    for moment, (added, removed) in enumerate(
        [(["Urgent"], []), (["urgent"], ["none"]), ([], ["urgent"]), ([], ["urgent"])]
    ):
        await db.write(labels.change, thread, added, removed, START + moment)
    for is_read in (True, True, False):
        await db.write(labels.record_read, thread, is_read, START + 9)
        await db.write(threads.mark_read, thread, is_read)

    def listed(tx: Tx) -> list[tuple[str, bool]]:
        found = label_changes.list_span(tx, inbox.id, Span(100, is_ascending=True))
        return [(each.label, each.is_added) for each in found if each.id != each.message_id]

    told = [("Urgent", True), ("Urgent", False), ("unread", False), ("unread", True)]
    assert await db.read(listed) == [each for each in told for _ in range(2)]


@pytest.mark.sqlite_alone
async def test_a_thread_has_so_many_labels_and_not_one_more(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        message = put_mail(tx, inbox)
        thread = threads.get(tx, inbox.scope, message.thread_id)
        words = [f"word {number:02}" for number in range(LABELS_OF_A_THREAD)]
        assert labels.change(tx, thread, words, [], START) == words
        labels.change(tx, thread, ["one more"], words[:1], START)  # another takes its place
        for attempt in (
            lambda: labels.change(tx, thread, ["too many"], [], START),
            lambda: labels.change_of_messages(tx, thread, [message.id], ["too many"], [], START),
        ):
            with refuses(BadRequest):
                attempt()

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_what_is_in_trash_or_of_a_removed_inbox_is_not_in_the_list_of_its_label(
    db: Database, inbox: Inbox
) -> None:
    kept, thrown = await thread_of(db, inbox, "<1@x>"), await thread_of(db, inbox, "<2@x>", START + 10)
    for thread in (kept, thrown):
        await db.write(labels.change, thread, ["Urgent"], [], START)

    def move(tx: Tx, way: Callable[[Tx, str, Sequence[str], int], None]) -> None:
        rows = tx.all("select id from messages where thread_id = :id", id=thrown.id)
        way(tx, inbox.id, [row["id"] for row in rows], START)

    await db.write(move, trash.add)
    assert await labelled(db, inbox) == [kept.id]
    await db.write(move, trash.restore)
    assert await labelled(db, inbox) == [thrown.id, kept.id]
    await db.write(inboxes.remove, Scope(inbox.account_id), inbox.id, START)
    assert await labelled(db, inbox) == []
