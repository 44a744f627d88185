"""Messages and threads: what callers change of them is refused, recorded and told in time."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.clock import DAY, to_iso
from postroom.errors import BadRequest, NothingToDo
from postroom.fields import Span
from postroom.mailbox import holds, messages
from postroom.mailbox.folders import label_changes
from postroom.mailbox.holds import Hold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.operations import messages as verbs
from postroom.operations import threads
from postroom.operations.messages import MessageChange
from postroom.operations.threads import ThreadChange
from postroom.outward.send_stages import SEND_AHEAD
from postroom.storage.database import Database, Tx
from tests.conftest import settings
from tests.dashboard.contexts import put_held
from tests.doubles import START
from tests.operations.callers import ADDRESS, make_caller, recorded
from tests.refusals import refuses
from tests.stored import make_inbox, put_mail

CONFIG = settings(Path("nowhere"))
LINKS = Links(CONFIG.base_url, START)


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


@pytest.fixture
async def caller(db: Database, inbox: Inbox) -> Caller:
    return await db.write(lambda tx: make_caller(tx, Scope(inbox.account_id)))


async def test_who_releases_a_stopped_message_is_recorded_within_its_inbox(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> str:
        let_in = put_mail(tx, inbox)
        with refuses(NothingToDo):
            verbs.release_message(tx, caller, let_in.id, CONFIG, LINKS, START)
        policy.add_rule(tx, inbox.scope, "inbound", "block", "example.com", START)
        put_mail(tx, inbox, now=START + 1)
        [row] = tx.all("select id from messages where id <> :id", id=let_in.id)
        stopped = messages.get(tx, caller.scope, row["id"])
        with refuses(NothingToDo):  # it is still being examined
            verbs.release_message(tx, caller, stopped.id, CONFIG, LINKS, START)
        tx.run("delete from examinations")
        verbs.release_message(tx, caller, stopped.id, CONFIG, LINKS, START)
        assert not messages.get(tx, caller.scope, stopped.id).is_blocked
        return stopped.id

    message_id = await db.write(run)
    assert await db.read(recorded, inbox.account_id) == [
        ("message.released", message_id, ADDRESS, inbox.pod_id, inbox.id)
    ]


@pytest.mark.sqlite_alone
async def test_a_scheduled_message_is_moved_to_a_time_ahead_and_not_too_far(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> None:
        message_id = put_held(tx, inbox, "Later").id

        def find() -> Hold:
            hold = holds.find(tx, message_id)
            assert hold is not None
            return hold

        def move(moment: int) -> None:
            change = MessageChange(send_at=to_iso(moment))
            verbs.change_message(tx, caller, message_id, change, CONFIG, LINKS, START)

        planned = START + DAY
        holds.put(tx, replace(find(), state=holds.SCHEDULED, send_at=planned, due_at=planned))
        for wrong in (START, START + SEND_AHEAD + 1):
            with refuses(BadRequest):
                move(wrong)
        assert find().due_at == planned
        move(START + SEND_AHEAD)
        assert find().due_at == START + SEND_AHEAD

    await db.write(run)


async def test_a_thread_that_is_read_tells_which_messages_that_changed(
    db: Database, inbox: Inbox, caller: Caller
) -> None:
    def run(tx: Tx) -> list[tuple[bool, str, bool]]:
        message = put_mail(tx, inbox)
        for is_read in (True, True, False):
            threads.change_thread(tx, caller, message.thread_id, ThreadChange(is_read=is_read), START)
        found = label_changes.list_span(tx, inbox.id, Span(10, is_ascending=True))
        return [(each.message_id == message.id, each.label, each.is_added) for each in found]

    assert sorted(await db.write(run)) == [(True, "unread", False), *[(True, "unread", True)] * 2]
