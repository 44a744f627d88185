"""Holds: listed by who reaches them, chosen by key and recipient, and woken where they wait."""

import pytest
from msgspec.structs import replace

from postroom.accounts import pods
from postroom.accounts.scope import Scope
from postroom.mailbox import holds, inboxes, messages
from postroom.mailbox.holds import HELD, SCHEDULED, Choice, Hold
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import SERVICE, make_inbox, put_delivery, put_mail

EMPTY = Hold(
    *("", "", "", "", "key_1", HELD, ("always",), "hash"),
    *((), False, None, None, None, None, START),
)


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def put(tx: Tx, inbox: Inbox, number: int, **fields: object) -> Hold:
    """The hold of a mail of its own."""
    place = {"account_id": inbox.account_id, "pod_id": inbox.pod_id, "inbox_id": inbox.id}
    message_id = put_mail(tx, inbox, subject=f"{number}").id
    changed = {**place, "message_id": message_id, "created_at": START + number, **fields}
    return holds.put(tx, replace(EMPTY, **changed))


def listed(tx: Tx, scope: Scope, state: str = HELD, choice: Choice = holds.ALL) -> list[str]:
    found, total = holds.list_within(tx, scope, state, 10, 0, choice)
    assert total == len(found)
    return [hold.message_id for hold in found]


async def test_what_waits_is_oldest_first_and_what_is_decided_newest_first(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        for state, is_oldest_first in ((HELD, True), (SCHEDULED, True), (holds.REJECTED, False)):
            made = [put(tx, inbox, number, state=state).message_id for number in range(3)]
            assert listed(tx, inbox.scope, state) == (made if is_oldest_first else made[::-1])

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_holds_are_of_their_place_and_go_with_their_inbox(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        account_id = inbox.account_id
        pod = pods.add(tx, account_id, None, "tenant", START)
        own = inboxes.add(tx, account_id, "own", None, None, SERVICE, START, pod.id)
        one, two = put(tx, inbox, 1).message_id, put(tx, own, 2).message_id
        assert listed(tx, Scope(account_id)) == [one, two]
        assert listed(tx, Scope(account_id, pod.id)) == [two]
        assert listed(tx, own.scope) == [two]
        assert listed(tx, make_inbox(tx, "other").scope) == []
        inboxes.remove(tx, Scope(account_id), own.id, START)
        assert listed(tx, Scope(account_id)) == [one]
        assert holds.count_within(tx, Scope(account_id), HELD) == 1

    await db.write(run)


async def test_holds_are_chosen_by_key_recipient_and_whether_a_person_decides(
    db: Database, inbox: Inbox
) -> None:
    def run(tx: Tx) -> None:
        first = put(tx, inbox, 1, key_id="key_2")
        paused = put(tx, inbox, 2, reasons=(holds.PAUSED,), is_paused=True)
        both = put(tx, inbox, 3, reasons=("always", holds.PAUSED))
        for hold, address in ((first, "bob@there.example"), (both, "carol@there.example")):
            [message] = messages.list_by_ids(tx, [hold.message_id])
            put_delivery(tx, message, address)
        ids = [hold.message_id for hold in (first, paused, both)]
        assert listed(tx, inbox.scope, choice=Choice(key_id="key_2")) == ids[:1]
        assert listed(tx, inbox.scope, choice=Choice(recipient="carol@there.example")) == ids[2:]
        assert listed(tx, inbox.scope, choice=holds.FOR_A_PERSON) == [ids[0], ids[2]]
        assert listed(tx, inbox.scope, choice=holds.FOR_ITS_PAUSE) == ids[1:2]
        assert [hold.needs_approval for hold in (first, paused, both)] == [True, False, True]

    await db.write(run)


@pytest.mark.sqlite_alone
async def test_a_loop_looks_at_what_is_due_and_what_was_woken(db: Database, inbox: Inbox) -> None:
    def run(tx: Tx) -> None:
        scheduled = put(tx, inbox, 1, state=SCHEDULED, due_at=START + 10).message_id
        put(tx, inbox, 2, state=SCHEDULED, let_go_at=START)
        put(tx, inbox, 3, state=SCHEDULED, key_id="key_2")
        paused = put(tx, inbox, 4, is_paused=True).message_id
        put(tx, inbox, 5)
        scope = Scope(inbox.account_id)
        assert len(holds.list_scheduled(tx, scope, 10)) == 2  # one has been let go
        assert holds.list_scheduled(tx, make_inbox(tx, "other").scope, 10) == []
        assert holds.list_due(tx, 10, START + 9) == []
        assert holds.list_due(tx, 10, START + 10) == [scheduled]
        assert not holds.wake_scheduled(tx, "acc_other", "key_1", START)
        assert not holds.wake_scheduled(tx, inbox.account_id, "key_3", START)
        assert holds.wake_scheduled(tx, inbox.account_id, "key_1", START)
        assert holds.list_due(tx, 10, START) == [scheduled]
        holds.wake_paused(tx, Scope("acc_other"), START)
        assert holds.list_due(tx, 10, START) == [scheduled]
        holds.wake_paused(tx, scope, START)
        assert set(holds.list_due(tx, 10, START)) == {scheduled, paused}

    await db.write(run)
