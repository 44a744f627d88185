"""Webhooks: whose events go where, signed with which secret, and when an endpoint is given up."""

import pytest
from msgspec.structs import replace as replace_struct

from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import BadRequest, NotFound
from postroom.events import event_log, kinds, webhook_log, webhooks
from postroom.events.event_log import EventChoice, EventRow
from postroom.events.webhooks import Webhook
from postroom.mailbox.inboxes import Inbox
from postroom.queue import deliveries
from postroom.queue.claims import Claims
from postroom.storage.database import Database
from tests.doubles import START
from tests.stored import find_delivery, make_inbox, put_mail

URL = "https://hook.example/a"


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def put(db: Database, inbox: Inbox, owner: str | None = None, url: str = URL) -> Webhook:
    account_id = inbox.account_id
    webhook, _ = await db.write(webhooks.put, owner or account_id, account_id, url, None, None, START)
    return webhook


@pytest.mark.sqlite_alone
async def test_what_is_not_given_stays_and_a_secret_is_made_once(db: Database, inbox: Inbox) -> None:
    owner = inbox.account_id
    first, is_new = await db.write(webhooks.put, owner, owner, URL, (kinds.MESSAGE_SENT,), None, START)
    again, is_new_again = await db.write(webhooks.put, owner, owner, URL + "b", None, None, START + 1)
    assert (is_new, is_new_again) == (True, False)
    assert (again.secret, again.event_types, again.created_at) == (first.secret, first.event_types, START)
    given, is_made = await db.write(webhooks.put, owner, owner, URL, None, "whsec_mine", START)
    assert (given.secret, is_made) == ("whsec_mine", False)
    with pytest.raises(BadRequest):
        await db.write(webhooks.put, owner, owner, URL, ("message.eaten",), None, START)


@pytest.mark.sqlite_alone
async def test_after_a_rotation_both_secrets_are_valid_for_a_day(db: Database, inbox: Inbox) -> None:
    before = await put(db, inbox)
    rotated = await db.write(webhooks.rotate_secret, inbox.account_id, START)
    assert await db.read(webhooks.get, inbox.account_id) == rotated
    assert rotated.secret != before.secret
    assert rotated.secrets_at(START + DAY - 1) == [rotated.secret, before.secret]
    assert rotated.secrets_at(START + DAY) == [rotated.secret]
    with pytest.raises(NotFound):
        await db.write(webhooks.rotate_secret, inbox.id, START)


@pytest.mark.sqlite_alone
async def test_an_inbox_s_own_webhook_comes_before_the_account_s(db: Database, inbox: Inbox) -> None:
    assert await db.read(webhooks.list_for_inbox, inbox.id, inbox.account_id) == []
    of_account = await put(db, inbox)
    assert await db.read(webhooks.list_for_inbox, inbox.id, inbox.account_id) == [of_account]
    own = await put(db, inbox, inbox.id)
    assert await db.read(webhooks.list_for_inbox, inbox.id, inbox.account_id) == [own]
    assert await db.write(webhooks.remove, inbox.id)
    assert not await db.write(webhooks.remove, inbox.id)


@pytest.mark.sqlite_alone
async def test_an_event_is_queued_only_for_an_enabled_webhook_that_wants_it(
    db: Database, inbox: Inbox
) -> None:
    webhook = await put(db, inbox)
    await db.write(put_mail, inbox, "1")
    (delivery,) = await db.write(Claims(deliveries.WEBHOOK).claim, [], 10, START)
    assert (delivery.target, delivery.webhook_owner) == (URL, inbox.account_id)
    assert delivery.lane == f"{inbox.account_id} hook.example"
    (event,) = (await db.read(event_log.list_after, EventChoice(Scope(inbox.account_id)), 0, 10)).events
    assert delivery.event_id == event.id
    stored = EventRow(
        id=event.id,
        account_id=event.account_id,
        position=event.position,
        inbox_id=event.inbox_id,
        kind=event.kind,
        payload=event.payload,
        message_id=event.message_id,
        created_at=event.created_at,
        pod_id=event.pod_id,
        text_files="",
    )
    unwanted = replace_struct(stored, kind=kinds.MESSAGE_FAILED)
    assert await db.write(webhooks.enqueue_all, [unwanted]) == set()
    await db.write(webhooks.record_failure, webhook, True, START)
    assert await db.write(webhooks.enqueue_all, [stored]) == set()


@pytest.mark.sqlite_alone
async def test_five_days_without_success_or_a_410_disable_an_endpoint(db: Database, inbox: Inbox) -> None:
    webhook = await put(db, inbox)
    await db.write(webhooks.record_failure, webhook, False, START)
    await db.write(webhooks.record_failure, webhook, False, START + 5 * DAY - 1)
    found = await db.read(webhooks.get, inbox.account_id)
    assert (found.enabled, found.failing_since) == (True, START)
    await db.write(webhooks.record_success, webhook)
    await db.write(webhooks.record_failure, webhook, False, START + 5 * DAY)
    assert (await db.read(webhooks.get, inbox.account_id)).enabled
    await db.write(webhooks.record_failure, webhook, False, START + 10 * DAY)
    disabled = await db.read(webhooks.get, inbox.account_id)
    assert (disabled.enabled, disabled.disabled_reason) == (False, "The endpoint has failed for five days.")
    again = await put(db, inbox)
    assert (again.enabled, again.failing_since) == (True, None)
    await db.write(webhooks.record_failure, again, True, START)
    assert (
        await db.read(webhooks.get, inbox.account_id)
    ).disabled_reason == "The endpoint answered 410 Gone."


@pytest.mark.sqlite_alone
async def test_a_failure_at_an_old_url_does_not_count_against_the_new(db: Database, inbox: Inbox) -> None:
    old = await put(db, inbox)
    await put(db, inbox, url="https://new.example/")
    await db.write(webhooks.record_failure, old, True, START)
    found = await db.read(webhooks.get, inbox.account_id)
    assert (found.enabled, found.failing_since) == (True, None)


async def test_the_log_is_of_one_account_and_sends_again_by_hand(db: Database, inbox: Inbox) -> None:
    await put(db, inbox)
    for at, text in enumerate(("1", "2")):
        await db.write(put_mail, inbox, text, START + at)
    newer, older = (await db.read(webhook_log.list_of_account, inbox.account_id, None, 10, 0))[0]
    assert newer.created_at > older.created_at
    assert await db.read(webhook_log.list_of_account, "acc_other", None, 10, 0) == ([], 0)
    (first, second) = await db.write(Claims(deliveries.WEBHOOK).claim, [], 10, START + 1)
    await db.write(deliveries.record_answer, first, 500, "oops", 7)
    await db.write(deliveries.finish, first, deliveries.FAILED, 500, "oops", START)
    (attempt,) = await db.read(webhook_log.list_attempts, first.id)
    assert (attempt.number, attempt.code, attempt.answer, attempt.milliseconds) == (1, 500, "oops", 7)
    failed, total = await db.read(webhook_log.list_of_account, inbox.account_id, deliveries.FAILED, 10, 0)
    assert ([each.id for each in failed], total) == ([first.id], 1)
    for account_id, delivery_id in (("acc_other", first.id), (inbox.account_id, "whd_nonsense")):
        with pytest.raises(NotFound):
            await db.write(webhook_log.send_again, account_id, delivery_id, START)
    assert await db.write(webhook_log.send_failed_again, inbox.account_id, START + 1, START + 9) == 0
    assert await db.write(webhook_log.send_failed_again, "acc_other", START, START + 9) == 0
    assert await db.write(webhook_log.send_failed_again, inbox.account_id, START, START + 9) == 1
    again = await db.read(find_delivery, first.id)
    assert (again.state, again.due_at, again.waits_used) == (deliveries.PENDING, START + 9, 0)
    await db.write(deliveries.finish, second, deliveries.DONE, 200, "ok", START)
    await db.write(webhook_log.send_again, inbox.account_id, second.id, START + 9)
    assert (await db.read(find_delivery, second.id)).state == deliveries.PENDING
