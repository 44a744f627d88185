"""Mail comes, programs file and delete it, REST labels and reads it, in any order: compared with a model.

POSTROOM_TEST_FOLDER_PLAYS makes it as long as you like.
"""

import os
import random
from dataclasses import dataclass, field

import pytest

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.config import load
from postroom.mailbox import labels, message_lists, threads
from postroom.mailbox.folders import uid_map, views
from postroom.mailbox.folders.flags import DELETED, SEEN
from postroom.mailbox.folders.uid_map import INBOX, TRASH
from postroom.mailbox.inboxes import Inbox
from postroom.operations import threads as thread_verbs
from postroom.operations.folders import labels as folder_verbs
from postroom.operations.folders import mails
from postroom.storage.database import Database, Tx
from postroom.upkeep.verification import counters
from tests.doubles import START
from tests.stored import make_inbox, put_mail

PLAYS = int(os.environ.get("POSTROOM_TEST_FOLDER_PLAYS", "2"))
STEPS = 60
WORK = uid_map.of_label("work")
FOLDERS = (INBOX, TRASH, WORK)
CONFIG = load({})


@dataclass
class Known:
    """A message as it should be; some answer others, and are in one thread with them."""

    name: str
    thread_id: str
    folders: set[str]
    flags: set[str] = field(default_factory=set)
    deleted_in: set[str] = field(default_factory=set)
    is_labelled: bool = False

    def leave(self, *folders: str) -> None:
        self.folders -= set(folders)
        self.deleted_in &= self.folders

    def lose_label(self) -> None:
        self.is_labelled = False
        self.leave(WORK)
        self.folders = self.folders or {INBOX}


class Play:
    def __init__(self, tx: Tx, inbox: Inbox, caller: Caller, seed: int) -> None:
        self.tx, self.inbox, self.caller = tx, inbox, caller
        self.random = random.Random(seed)
        self.known: dict[str, Known] = {}
        self.last_uid = 0
        self.uids: dict[tuple[str, str], int] = {}

    def step(self, number: int) -> None:
        moves = [self.receive, self.store, self.move, self.expunge, self.label, self.read]
        self.random.choice(moves)(number)
        self.compare()

    def receive(self, number: int) -> None:
        name, fields = f"<{number}@x>", {}
        if self.known and self.random.random() < 0.6:
            fields = {"in_reply_to": self.random.choice(list(self.known.values())).name}
        text, at = f"Text {number}", START + number
        message = put_mail(self.tx, self.inbox, text, at, message_id=name, **fields)
        self.known[message.id] = Known(name, message.thread_id, {INBOX})

    def of_thread(self, thread_id: str) -> list[Known]:
        return [known for known in self.known.values() if known.thread_id == thread_id]

    def some(self, folder: str) -> list[int]:
        there = views.uids(self.tx, self.inbox.id, folder)
        return sorted(self.random.sample(there, min(len(there), self.random.randint(1, 3))))

    def ids(self, folder: str, uids: list[int]) -> list[str]:
        return [mail.message_id for mail in views.list_mails(self.tx, self.inbox.id, folder, uids)]

    def store(self, number: int) -> None:
        folder, mode = self.random.choice(FOLDERS), self.random.choice("+-")
        given = self.random.choice((SEEN, DELETED, "\\Flagged", "$Later"))
        uids = self.some(folder)
        mails.change_flags(
            self.tx, self.caller, self.inbox.id, folder, uids, mode, frozenset({given}), None, START + number
        )
        for message_id in self.ids(folder, uids):
            known = self.known[message_id]
            held, mark = (known.deleted_in, folder) if given == DELETED else (known.flags, given)
            held.add(mark) if mode == "+" else held.discard(mark)

    def move(self, number: int) -> None:
        ways = [(INBOX, WORK), (INBOX, TRASH), (WORK, TRASH), (WORK, INBOX), (TRASH, INBOX), (TRASH, WORK)]
        folder, target = self.random.choice(ways)
        uids = self.some(folder)
        moved = self.ids(folder, uids)
        name = {INBOX: "INBOX", TRASH: "Trash", WORK: "Work"}[target]
        mails.move_mails(self.tx, self.caller, self.inbox.id, folder, uids, name, CONFIG, START + number)
        for message_id in moved:
            self.after_move(self.known[message_id], folder, target)

    def after_move(self, known: Known, folder: str, target: str) -> None:
        if target == TRASH:
            known.leave(*FOLDERS)
        known.folders.add(target)
        if target == WORK:
            known.is_labelled = True
        if folder == TRASH and known.is_labelled:
            known.folders.add(WORK)
        if folder == WORK and target == INBOX:
            known.lose_label()
        known.leave(*({folder} - {target}))

    def expunge(self, number: int) -> None:
        folder = self.random.choice(FOLDERS)
        everything = views.uids(self.tx, self.inbox.id, folder)
        gone = [each for each in self.ids(folder, everything) if folder in self.known[each].deleted_in]
        mails.expunge_mails(self.tx, self.caller, self.inbox.id, folder, everything, START + number)
        for message_id in gone:
            known = self.known[message_id]
            if folder == TRASH:
                del self.known[message_id]
            elif folder == WORK:
                known.lose_label()
            else:
                known.leave(*FOLDERS)
                known.folders = {TRASH}

    def label(self, number: int) -> None:
        if not self.known:
            return
        message_id, chosen = self.random.choice(list(self.known.items()))
        thread = threads.get(self.tx, self.caller.scope, chosen.thread_id)
        added, removed = (["Work"], []) if self.random.random() < 0.5 else ([], ["work"])
        if self.random.random() < 0.5:
            meant = [chosen]
            labels.change_of_messages(self.tx, thread, [message_id], added, removed, START)
        else:
            meant = self.of_thread(chosen.thread_id)
            labels.change(self.tx, thread, added, removed, START)
        for known in meant:
            if removed and known.is_labelled:
                known.lose_label()
            elif added:
                known.is_labelled = True
                known.folders |= set() if TRASH in known.folders else {WORK}

    def read(self, number: int) -> None:
        if not self.known:
            return
        known = self.random.choice(list(self.known.values()))
        is_read = self.random.random() < 0.5
        change = thread_verbs.ThreadChange(is_read=is_read)
        thread_verbs.change_thread(self.tx, self.caller, known.thread_id, change, START)
        for each in self.of_thread(known.thread_id):
            each.flags.add(SEEN) if is_read else each.flags.discard(SEEN)

    def compare(self) -> None:
        for folder in FOLDERS:
            uids = views.uids(self.tx, self.inbox.id, folder)
            found = {mail.message_id: mail for mail in views.list_mails(self.tx, self.inbox.id, folder, uids)}
            assert set(found) == {each for each, known in self.known.items() if folder in known.folders}
            for message_id, mail in found.items():
                known = self.known[message_id]
                assert mail.flags == known.flags | ({DELETED} if folder in known.deleted_in else set())
                before = self.uids.setdefault((message_id, folder), mail.uid)
                assert mail.uid >= before, "a message that comes back has a new number"
                self.uids[message_id, folder] = mail.uid
            state = views.state(self.tx, self.inbox.id, folder)
            assert state.messages == len(uids)
            assert not uids or state.next_uid > uids[-1]
        for thread_id in {known.thread_id for known in self.known.values()}:
            self.compare_thread(thread_id)
        self.compare_lists()

    def compare_thread(self, thread_id: str) -> None:
        thread = threads.get(self.tx, self.caller.scope, thread_id)
        there = self.of_thread(thread_id)
        assert thread.is_read == all(SEEN in known.flags for known in there)
        has_label = any(known.is_labelled for known in there)
        assert labels.of_threads(self.tx, [thread_id]) == ({thread_id: ["Work"]} if has_label else {})

    def compare_lists(self) -> None:
        shown = {each for each, known in self.known.items() if TRASH not in known.folders}
        listed, total = message_lists.list_of_inbox(self.tx, self.inbox.id, None, 200, 0)
        assert {each.id for each in listed.messages} == shown
        assert total == len(shown)
        everything, whole = message_lists.list_of_inbox(self.tx, self.inbox.id, None, 200, 0, "trash")
        assert {each.id for each in everything.messages} == set(self.known)
        assert whole == len(self.known)
        found, count = threads.list_of_inbox(self.tx, self.inbox.id, None, 200, 0)
        thread_ids = {self.known[each].thread_id for each in shown}
        assert {each.id for each in found} == thread_ids
        assert count == len(thread_ids)
        for counted in (counters.THREADS, counters.INBOXES):
            assert counted.look(self.tx, "").findings == []


@pytest.mark.parametrize("seed", range(PLAYS))
async def test_folders_are_what_a_model_says(db: Database, seed: int) -> None:
    def play(tx: Tx) -> None:
        inbox = make_inbox(tx)
        keys.add(tx, inbox.account_id, None, "program", "pr_token", START)
        caller = keys.find_caller(tx, "pr_token", START)
        assert caller is not None
        uid_map.open_inbox(tx, inbox.id, START)
        folder_verbs.create_folder(tx, caller, inbox.id, "Work", START)
        game = Play(tx, inbox, caller, seed)
        for number in range(STEPS):
            game.step(number)

    await db.write(play)
