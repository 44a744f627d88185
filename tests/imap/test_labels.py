"""A label's folder has the messages that have the label: each alone, not the whole thread."""

import pytest

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.config import load
from postroom.mailbox import labels, threads
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.folders.flags import DELETED
from postroom.mailbox.folders.uid_map import INBOX, TRASH
from postroom.mailbox.inboxes import Inbox
from postroom.operations.folders import labels as folder_verbs
from postroom.operations.folders import mails
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox, put_mail

BILLS = uid_map.of_label("bills")


class Mailbox:
    """An inbox with a thread of two mails, and a folder Bills."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx
        self.inbox: Inbox = make_inbox(tx)
        keys.add(tx, self.inbox.account_id, None, "program", "pr_token", START)
        caller = keys.find_caller(tx, "pr_token", START)
        assert caller is not None
        self.caller: Caller = caller
        uid_map.open_inbox(tx, self.inbox.id, START)
        folder_verbs.create_folder(tx, caller, self.inbox.id, "Bills", START)
        self.first = put_mail(tx, self.inbox, "One", START, message_id="<1@x>")
        self.second = put_mail(tx, self.inbox, "Two", START + 1, message_id="<2@x>", in_reply_to="<1@x>")
        assert self.first.thread_id == self.second.thread_id

    def uid(self, folder: str, message_id: str) -> int:
        return views.find_uids(self.tx, self.inbox.id, folder, [message_id])[message_id]

    def copy(self, message_id: str) -> None:
        uids = [self.uid(INBOX, message_id)]
        mails.copy_mails(self.tx, self.caller, self.inbox.id, INBOX, uids, "Bills", load({}), START)

    def move(self, folder: str, message_id: str, name: str) -> None:
        uids = [self.uid(folder, message_id)]
        mails.move_mails(self.tx, self.caller, self.inbox.id, folder, uids, name, load({}), START)

    def there(self, folder: str) -> list[str]:
        uids = views.uids(self.tx, self.inbox.id, folder)
        return [mail.message_id for mail in views.list_mails(self.tx, self.inbox.id, folder, uids)]

    def labels(self) -> dict[str, list[str]]:
        return labels.of_messages(self.tx, [self.first.id, self.second.id])

    def labels_of_thread(self) -> list[str]:
        thread_id = self.first.thread_id
        return labels.of_threads(self.tx, [thread_id]).get(thread_id, [])


@pytest.mark.sqlite_alone
async def test_a_copy_labels_the_message_alone_and_deleting_there_takes_the_label_from_it_alone(
    db: Database,
) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        box.copy(box.first.id)
        assert box.there(BILLS) == [box.first.id]
        assert box.labels() == {box.first.id: ["Bills"]}
        assert box.labels_of_thread() == ["Bills"]
        box.copy(box.second.id)
        assert box.there(BILLS) == [box.first.id, box.second.id]
        uids = [box.uid(BILLS, box.first.id)]
        marks = frozenset({DELETED})
        mails.change_flags(tx, box.caller, box.inbox.id, BILLS, uids, "+", marks, None, START)
        mails.expunge_mails(tx, box.caller, box.inbox.id, BILLS, uids, START)
        assert box.labels() == {box.second.id: ["Bills"]}
        assert box.labels_of_thread() == ["Bills"]
        assert box.there(INBOX) == [box.first.id, box.second.id]

    await db.write(work)


@pytest.mark.sqlite_alone
async def test_a_mail_that_answers_a_labelled_one_is_not_in_the_folder_of_the_label(db: Database) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        thread = threads.get(tx, box.inbox.scope, box.first.thread_id)
        labels.change(tx, thread, ["Bills"], [], START)
        assert box.there(BILLS) == [box.first.id, box.second.id]
        put_mail(tx, box.inbox, "Three", START + 2, message_id="<3@x>", in_reply_to="<2@x>")
        assert box.there(BILLS) == [box.first.id, box.second.id]

    await db.write(work)


@pytest.mark.sqlite_alone
async def test_a_moved_message_that_loses_its_label_is_in_inbox_again_its_thread_stays(db: Database) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        box.move(INBOX, box.first.id, "Bills")
        assert (box.there(INBOX), box.there(BILLS)) == ([box.second.id], [box.first.id])
        thread = threads.get(tx, box.inbox.scope, box.first.thread_id)
        labels.change_of_messages(tx, thread, [box.first.id], ["Paid"], ["Bills"], START)
        assert (box.there(INBOX), box.there(BILLS)) == ([box.second.id], [])
        assert box.there(uid_map.of_label("paid")) == [box.first.id]
        labels.change_of_messages(tx, thread, [box.first.id], [], ["paid"], START)
        assert box.there(INBOX) == [box.second.id, box.first.id]
        assert box.labels_of_thread() == []

    await db.write(work)


@pytest.mark.sqlite_alone
async def test_what_comes_back_from_trash_is_in_all_folders_of_its_labels(db: Database) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        box.copy(box.first.id)
        box.move(INBOX, box.first.id, "Trash")
        assert box.there(BILLS) == []
        folder_verbs.create_folder(tx, box.caller, box.inbox.id, "Paid", START)
        box.move(TRASH, box.first.id, "Paid")
        assert box.labels() == {box.first.id: ["Bills", "Paid"]}
        assert box.there(BILLS) == box.there(uid_map.of_label("paid")) == [box.first.id]

    await db.write(work)


@pytest.mark.sqlite_alone
async def test_what_is_copied_to_a_label_and_deleted_in_inbox_is_moved(db: Database) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        box.copy(box.first.id)
        uids = [box.uid(INBOX, box.first.id), box.uid(INBOX, box.second.id)]
        marks = frozenset({DELETED})
        mails.change_flags(tx, box.caller, box.inbox.id, INBOX, uids, "+", marks, None, START)
        mails.expunge_mails(tx, box.caller, box.inbox.id, INBOX, uids, START)
        assert (box.there(INBOX), box.there(BILLS)) == ([], [box.first.id])
        assert box.there(TRASH) == [box.second.id], "no label's folder has it"
        (kept,) = views.list_mails(tx, box.inbox.id, BILLS, [box.uid(BILLS, box.first.id)])
        assert DELETED not in kept.flags
        thread = threads.get(tx, box.inbox.scope, box.first.thread_id)
        labels.change_of_messages(tx, thread, [box.first.id], [], ["Bills"], START)
        assert box.there(INBOX) == [box.first.id]

    await db.write(work)


@pytest.mark.sqlite_alone
async def test_a_label_named_like_a_folder_keeps_nothing_out_of_trash(db: Database) -> None:
    def work(tx: Tx) -> None:
        box = Mailbox(tx)
        thread = threads.get(tx, box.inbox.scope, box.first.thread_id)
        labels.change_of_messages(tx, thread, [box.first.id], ["Sent"], [], START)
        uids = [box.uid(INBOX, box.first.id)]
        marks = frozenset({DELETED})
        mails.change_flags(tx, box.caller, box.inbox.id, INBOX, uids, "+", marks, None, START)
        mails.expunge_mails(tx, box.caller, box.inbox.id, INBOX, uids, START)
        assert box.there(TRASH) == [box.first.id]

    await db.write(work)
