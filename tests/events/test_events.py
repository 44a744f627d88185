"""The log of events: numbered without gaps, read from any place, in scope alone."""

import pytest

from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, NotFound
from postroom.events import event_log, kinds, webhooks
from postroom.events.announce import announce, announce_all
from postroom.events.event_log import EventChoice
from postroom.events.payload import NewEvent
from postroom.mailbox import documents
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.queue import deliveries
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox, put_mail

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def news(inbox: Inbox, message: Message, kind: str = kinds.MESSAGE_SENT) -> NewEvent:
    return NewEvent(inbox.account_id, inbox.pod_id, kind, documents.decode(message.document), (), START)


async def test_positions_of_an_account_have_no_gap_and_are_in_order(db: Database, inbox: Inbox) -> None:
    def record(tx: Tx) -> list[int]:
        other = make_inbox(tx, "other")
        mine, theirs = put_mail(tx, inbox), put_mail(tx, other)
        told = [news(inbox, mine), news(other, theirs), news(inbox, mine)]
        return [event.position for event in event_log.record_all(tx, told, "http://x")]

    assert await db.write(record) == [2, 2, 3]  # the mails themselves were the first
    assert await db.read(event_log.last_position, inbox.account_id) == 3
    assert await db.read(event_log.last_position, "acc_other") == 0


async def test_the_log_is_read_after_a_place_by_inbox_and_kind(db: Database, inbox: Inbox) -> None:
    second = await db.write(make_inbox, "second", inbox.account_id)
    message = await db.write(put_mail, inbox, "1")
    await db.write(put_mail, second, "2")
    await db.write(announce, news(inbox, message), "http://x")

    async def read(wanted: EventChoice, after: int = 0, limit: int = 10) -> list[int]:
        page = await db.read(event_log.list_after, wanted, after, limit)
        return [event.position for event in page.events]

    mine = Scope(inbox.account_id)
    assert await read(EventChoice(mine)) == [1, 2, 3]
    assert await read(EventChoice(mine), 1) == [2, 3]
    assert await read(EventChoice(mine), 0, 2) == [1, 2]
    assert await read(EventChoice(mine, frozenset({inbox.id}))) == [1, 3]
    assert await read(EventChoice(mine, kinds=frozenset({kinds.MESSAGE_RECEIVED}))) == [1, 2]
    scoped = Scope(inbox.account_id, inbox_id=second.id)
    assert await read(EventChoice(scoped)) == [2]
    assert await read(EventChoice(scoped, frozenset({inbox.id}))) == []
    assert await read(EventChoice(Scope("acc_other"))) == []


async def test_a_place_in_the_log_is_found_by_its_owner_alone(db: Database, inbox: Inbox) -> None:
    message = await db.write(put_mail, inbox)
    (event,) = (await db.read(event_log.list_after, EventChoice(Scope(inbox.account_id)), 0, 10)).events
    assert await db.read(event_log.position_of, Scope(inbox.account_id), event.id) == 1
    for account_id, event_id in (("acc_other", event.id), (inbox.account_id, "evt_nonsense")):
        with pytest.raises(NotFound):
            await db.read(event_log.position_of, Scope(account_id), event_id)
    assert await db.read(event_log.position_of_message, inbox.account_id, inbox.id, message.id) == 1
    for place in (("acc_other", inbox.id), (inbox.account_id, "inb_other")):
        with pytest.raises(NotFound):
            await db.read(event_log.position_of_message, *place, message.id)
    assert await db.read(event_log.find, event.id) == event


async def test_the_bells_name_the_account_and_webhooks_only_where_somebody_wants_it(
    db: Database, inbox: Inbox
) -> None:
    message = await db.write(put_mail, inbox)
    owner = inbox.account_id
    await db.write(webhooks.put, owner, owner, "http://h.example/", (kinds.MESSAGE_SENT,), None, START)
    told = [news(inbox, message, kind) for kind in (kinds.MESSAGE_SENT, kinds.MESSAGE_FAILED)]
    bell = event_log.bell(owner)
    assert await db.write(announce_all, told, "http://x") == [[bell, deliveries.WEBHOOK_BELL], [bell]]


def test_a_kind_that_does_not_exist_is_refused() -> None:
    kinds.require_known(kinds.KINDS, "eventTypes")
    with pytest.raises(BadRequest, match=r"message\.received"):
        kinds.require_known(["message.eaten"], "eventTypes")


async def test_who_reaches_an_inbox_or_a_pod_sees_kinds_that_this_version_does_not_know(
    db: Database, inbox: Inbox
) -> None:
    message = await db.write(put_mail, inbox, "1")
    await db.write(announce, news(inbox, message, "message.dreamt"), "http://x")
    for scope in (Scope(inbox.account_id, inbox.pod_id, inbox.id), Scope(inbox.account_id, inbox.pod_id)):
        page = await db.read(event_log.list_after, EventChoice(scope), 0, 10)
        assert [event.kind for event in page.events] == ["message.received", "message.dreamt"]
