"""What an answer of an endpoint means for a delivery: done, once more, or never again."""

from typing import Any

import pytest

from postroom.clock import HOUR, SECOND
from postroom.events import event_log, webhooks
from postroom.events.webhook_signature import sign
from postroom.mailbox.inboxes import Inbox
from postroom.outward.deliver_webhook import give_up, record_tried, signed_headers
from postroom.queue import deliveries, retries
from postroom.queue.claims import Claims
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.storage.database import Database
from tests.doubles import START
from tests.stored import find_delivery, make_inbox, put_mail

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def claimed(db: Database, inbox: Inbox) -> Delivery:
    owner = inbox.account_id
    await db.write(webhooks.put, owner, owner, "http://h.example/", None, None, START)
    await db.write(put_mail, inbox)
    (delivery,) = await db.write(Claims(deliveries.WEBHOOK).claim, [], 1, START)
    return delivery


async def after(db: Database, inbox: Inbox, delivery: Delivery, outcome: Outcome) -> Delivery:
    webhook = await db.read(webhooks.get, inbox.account_id)
    await db.write(record_tried, TriedDelivery(delivery, outcome), webhook)
    return await db.read(find_delivery, delivery.id)


def answer(code: int | None, text: str, **more: Any) -> Outcome:
    return Outcome(code=code, text=text, milliseconds=5, ended_at=START, **more)


async def test_success_ends_a_delivery_and_the_failing_of_its_endpoint(db: Database, inbox: Inbox) -> None:
    delivery = await claimed(db, inbox)
    failed = await after(db, inbox, delivery, answer(500, "oops"))
    assert (failed.state, failed.waits_used, failed.last_code) == (deliveries.PENDING, 1, 500)
    assert 4 * SECOND <= failed.due_at - START <= 6 * SECOND
    assert (await db.read(webhooks.get, inbox.account_id)).failing_since == START
    (again,) = await db.write(Claims(deliveries.WEBHOOK).claim, [], 1, failed.due_at)
    done = await after(db, inbox, again, answer(200, "ok", is_success=True))
    assert (done.state, done.last_code, done.last_reply) == (deliveries.DONE, 200, "ok")
    assert (await db.read(webhooks.get, inbox.account_id)).failing_since is None


async def test_an_endpoint_may_ask_for_a_longer_wait(db: Database, inbox: Inbox) -> None:
    delivery = await claimed(db, inbox)
    waiting = await after(db, inbox, delivery, answer(503, "busy", retry_after_seconds=3600))
    assert waiting.due_at == START + HOUR


@pytest.mark.parametrize(("code", "is_enabled"), [(410, False), (None, True)])
async def test_what_is_permanent_is_not_tried_again(
    db: Database, inbox: Inbox, code: int | None, is_enabled: bool
) -> None:
    delivery = await claimed(db, inbox)
    ended = await after(db, inbox, delivery, answer(code, "no", is_permanent=True))
    assert ended.state == deliveries.FAILED
    assert (await db.read(webhooks.get, inbox.account_id)).enabled is is_enabled


@pytest.mark.both_databases
async def test_after_the_last_wait_a_delivery_has_failed(db: Database, inbox: Inbox) -> None:
    delivery = await claimed(db, inbox)
    used = len(retries.WEBHOOK_WAITS)
    await db.write(lambda tx: tx.run("update deliveries set waits_used = :used", used=used))
    ended = await after(db, inbox, await db.read(find_delivery, delivery.id), answer(500, "oops"))
    assert ended.state == deliveries.FAILED


async def test_without_a_webhook_nothing_is_posted(db: Database, inbox: Inbox) -> None:
    delivery = await claimed(db, inbox)
    await db.write(give_up, delivery, START)
    assert (await db.read(find_delivery, delivery.id)).state == deliveries.FAILED


async def test_the_signature_is_of_the_second_and_the_stored_bytes(db: Database, inbox: Inbox) -> None:
    delivery = await claimed(db, inbox)
    event = await db.read(event_log.find, delivery.event_id or "")
    assert event is not None
    headers = signed_headers(event.id, event.payload, "whsec_x", START + 999)
    assert headers["X-Timestamp"] == str(START // SECOND)
    assert headers["X-Signature"] == sign("whsec_x", START // SECOND, event.payload)
    assert headers["X-Event-Id"] == event.id
