"""Limits counted from rows: exact at their edge, and gone when their time is."""

import pytest

from postroom.accounts.rules import limits
from postroom.accounts.rules.limits import Budget
from postroom.clock import DAY, HOUR, MINUTE
from postroom.errors import ApiError, ColdOutreachLimit, LoopDetected, RateLimitExceeded
from postroom.inward.deposit import deposit
from postroom.limits import COLD_RECIPIENTS_PER_DAY, INBOXES_PER_DAY, SENDS_PER_DAY
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.raw_mails import raw_mail
from tests.stored import incoming, make_inbox, put_delivery, put_mail

MIDNIGHT = (START // DAY + 2) * DAY


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def add_sends(tx: Tx, inbox: Inbox, moments: list[int]) -> str:
    """Stored mails made into sent ones; gives their thread."""
    message = put_mail(tx, inbox, "0", message_id="<0@x>", now=moments[0])
    replies = [raw_mail("Again", message_id=f"<{number}@x>", in_reply_to="<0@x>") for number in moments[1:]]
    deposit(tx, [incoming(inbox, reply, now) for reply, now in zip(replies, moments[1:], strict=True)])
    tx.run("update messages set direction = 'outbound' where inbox_id = :id", id=inbox.id)
    return message.thread_id


def retry_after(error: ApiError) -> object:
    return error.retry_after


@pytest.mark.sqlite_alone
async def test_ten_sends_fit_into_any_minute(db: Database, inbox: Inbox) -> None:
    await db.write(add_sends, inbox, [START + number for number in range(9)])
    await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 1, START + 100)
    with pytest.raises(RateLimitExceeded) as refusal:
        await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 2, START + 1_000)
    assert retry_after(refusal.value) == 59
    await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 2, START + MINUTE)
    with pytest.raises(RateLimitExceeded):
        await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 11, START + DAY)


async def test_two_hundred_sends_fit_into_a_day_and_midnight_begins_another(
    db: Database, inbox: Inbox
) -> None:
    moments = [MIDNIGHT + number * 5 * MINUTE for number in range(SENDS_PER_DAY)]
    await db.write(add_sends, inbox, moments)
    evening = MIDNIGHT + DAY - HOUR
    with pytest.raises(RateLimitExceeded) as refusal:
        await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 1, evening)
    assert retry_after(refusal.value) == 3600
    await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 1, MIDNIGHT + DAY)
    await db.write(lambda tx: tx.run("delete from messages where created_at = :at", at=moments[0]))
    await db.read(limits.require_sends, "inbox_id", inbox.id, Budget(), 1, evening)


@pytest.mark.sqlite_alone
async def test_a_young_inbox_writes_to_twenty_strangers_a_day(db: Database, inbox: Inbox) -> None:
    def meet(tx: Tx) -> None:
        message = put_mail(tx, inbox)
        for number in range(COLD_RECIPIENTS_PER_DAY - 1):
            put_delivery(tx, message, f"{number}@x.example", is_cold=1, created_at=MIDNIGHT)
        put_delivery(tx, message, "friend@x.example", is_cold=0, created_at=MIDNIGHT)
        put_delivery(tx, message, "yesterday@x.example", is_cold=1, created_at=MIDNIGHT - 1)

    await db.write(meet)

    async def ask(*cold: str, now: int = MIDNIGHT + HOUR) -> None:
        await db.read(limits.require_cold_limit, inbox.id, START, Budget(), cold, now)

    await ask("new@x.example")
    await ask("new@x.example", "0@x.example")
    with pytest.raises(ColdOutreachLimit) as refusal:
        await ask("new@x.example", "other@x.example")
    assert retry_after(refusal.value) == 23 * 3600
    many = [f"s{number}@x.example" for number in range(21)]
    with pytest.raises(ColdOutreachLimit):
        await ask(*many, now=START + 30 * DAY - 1)
    await ask(*many, now=START + 30 * DAY)
    await ask(now=MIDNIGHT)


@pytest.mark.sqlite_alone
async def test_twenty_replies_an_hour_to_a_machine_are_a_loop(db: Database, inbox: Inbox) -> None:
    moments = [START + number * MINUTE for number in range(limits.LOOP_REPLIES_PER_HOUR)]
    thread_id = await db.write(add_sends, inbox, moments)
    now = moments[-1]
    with pytest.raises(LoopDetected) as refusal:
        await db.read(limits.require_no_loop, thread_id, 1, now)
    assert retry_after(refusal.value) == 41 * 60
    await db.read(limits.require_no_loop, thread_id, 1, START + HOUR)
    with pytest.raises(LoopDetected):
        await db.read(limits.require_no_loop, thread_id, 2, START + HOUR)
    await db.read(limits.require_no_loop, "thr_other", 1, now)


async def test_a_hundred_inboxes_a_day_can_be_created(db: Database, inbox: Inbox) -> None:
    def create(tx: Tx) -> None:
        for number in range(INBOXES_PER_DAY - 1):
            tx.run(
                "insert into inbox_creations (inbox_id, account_id, created_at) values (:id, :owner, :now)",
                id=f"inb_{number}",
                owner=inbox.account_id,
                now=START,
            )

    await db.read(limits.require_inbox_creation, inbox.account_id, 100, START)
    await db.write(create)
    with pytest.raises(RateLimitExceeded):
        await db.read(limits.require_inbox_creation, inbox.account_id, 100, START)
    await db.read(limits.require_inbox_creation, inbox.account_id, 100, START + DAY)
    await db.read(limits.require_inbox_creation, "acc_other", 100, START)
    await db.read(limits.require_inbox_creation, inbox.account_id, None, START)
