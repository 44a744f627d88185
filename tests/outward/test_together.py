"""Mails and sends that are stored in one call give the same as one after the other."""

from collections.abc import Callable

import pytest

from postroom.accounts import accounts
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import DAY, MINUTE
from postroom.errors import ColdOutreachLimit, RateLimitExceeded
from postroom.inward.deposit import PART_MAX_SIZE, deposit, in_parts, to_each_inbox
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin
from postroom.inward.receive import read_mail
from postroom.limits import COLD_RECIPIENTS_PER_DAY, SENDS_PER_DAY, SENDS_PER_MINUTE
from postroom.mailbox import inboxes
from postroom.mailbox.documents import plain
from postroom.mailbox.inboxes import Inbox
from postroom.outward.courier import Receipt, to_outcome
from postroom.outward.deliver_mail import record_tried
from postroom.outward.delivering.mail_job import TriedMail, look_up
from postroom.outward.send import to_composed_mail
from postroom.outward.send_stages import Context, Order, Submission
from postroom.outward.submit import submit
from postroom.queue import deliveries
from postroom.queue.claims import Claims
from postroom.storage.database import Database, Tx
from postroom_mail.mime.address import Address
from tests.doubles import START
from tests.raw_mails import raw_mail

MIDNIGHT = (START // DAY + 3) * DAY


def make_inbox(tx: Tx) -> Inbox:
    account = accounts.add(tx, "sender", "developer", START)
    return inboxes.add(tx, account.id, "hello", None, None, "postroom.localhost", START)


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


def incoming(inbox: Inbox, raw: bytes, copies: int = 1) -> AcceptedMail:
    arrival = Arrival(Origin((Destination(inbox.id),) * copies, b"", "", "", "alice@example.com"), raw)
    return AcceptedMail(read_mail(arrival), "http://x", START)


def submission(inbox: Inbox, key: str, now: int, to: str = "p@example.com") -> Submission:
    order = Order(inbox.id, key, key, (Address("", to),), "Hi", "Hello", include_quote=True)
    around = Context(inbox)
    caller = Caller("key_1", inbox.account_id, "sender", "developer", Scope(inbox.account_id))
    return Submission(caller, order, around, to_composed_mail(order, around, now), None, "http://x", now)


def new_participants(tx: Tx) -> list[str]:
    rows = tx.all("select rfc_message_id, document from messages order by id")
    return [row["rfc_message_id"] for row in rows if b'"newParticipant":true' in plain(row["document"])]


async def test_whoever_was_copied_a_moment_before_is_no_new_participant(db: Database, inbox: Inbox) -> None:
    answer = {"in_reply_to": "<parent@x>"}
    mails = [
        incoming(inbox, raw_mail(message_id="<one@x>", sender="a@x.example", cc="carol@x.example", **answer)),
        incoming(inbox, raw_mail(message_id="<two@x>", **{"from": "carol@x.example"}, **answer)),
        incoming(inbox, raw_mail(message_id="<three@x>", **{"from": "mallory@x.example"}, **answer)),
    ]
    await db.write(deposit, [incoming(inbox, raw_mail(message_id="<parent@x>"))])
    await db.write(deposit, mails)
    assert await db.read(new_participants) == ["<three@x>"]


def test_the_rows_of_large_mails_are_not_in_memory_together() -> None:
    inbox = Inbox("inb_1", "acc_1", "hello@postroom.localhost", None, START, "pod_1")
    large = incoming(inbox, raw_mail("x" * (PART_MAX_SIZE // 3)), copies=100)
    handed = to_each_inbox(large)
    assert [len(part) for part in in_parts(handed)] == [1] * 100
    small = incoming(inbox, raw_mail("x"), copies=100)
    handed = to_each_inbox(small)
    assert [len(part) for part in in_parts(handed)] == [100]


async def refusal(db: Database, function: Callable[[Tx], object]) -> type[Exception] | None:
    try:
        await db.write(function)
    except (RateLimitExceeded, ColdOutreachLimit) as error:
        return type(error)
    return None


@pytest.mark.sqlite_alone
async def test_no_limit_is_passed_by_sends_of_different_moments_in_one_call(
    db: Database, inbox: Inbox
) -> None:
    now = START + DAY
    for number in range(SENDS_PER_MINUTE):
        await db.write(submit, [submission(inbox, f"minute {number}", now - MINUTE + 10)])
    pair = [submission(inbox, "first", now), submission(inbox, "second", now + 20)]
    assert await refusal(db, lambda tx: submit(tx, pair)) is RateLimitExceeded
    for number in range(SENDS_PER_DAY):
        await db.write(submit, [submission(inbox, f"day {number}", MIDNIGHT - DAY + number * 5 * MINUTE)])
    pair = [submission(inbox, "before", MIDNIGHT - 5), submission(inbox, "after", MIDNIGHT + 5)]
    assert await refusal(db, lambda tx: submit(tx, pair)) is RateLimitExceeded
    assert await refusal(db, lambda tx: submit(tx, pair[1:])) is None


@pytest.mark.sqlite_alone
async def test_the_strangers_of_two_days_in_one_call_pass_no_limit(db: Database, inbox: Inbox) -> None:
    for number in range(COLD_RECIPIENTS_PER_DAY):
        moment = MIDNIGHT - DAY + number * MINUTE
        await db.write(submit, [submission(inbox, f"{number}", moment, f"p{number}@example.com")])
    pair = [
        submission(inbox, "before", MIDNIGHT - 5, "new1@example.com"),
        submission(inbox, "after", MIDNIGHT + 5, "new2@example.com"),
    ]
    assert await refusal(db, lambda tx: submit(tx, pair)) is ColdOutreachLimit
    assert await refusal(db, lambda tx: submit(tx, pair[1:])) is None


async def test_what_one_account_suppresses_another_may_be_sent_together_with_it(db: Database) -> None:
    mine, other = await db.write(make_inbox), None

    def add_other(tx: Tx) -> Inbox:
        account = accounts.add(tx, "other", "developer", START)
        tx.run(
            "insert into suppressions (account_id, address, type, created_at)"
            " values (:id, 'p@example.com', 'manual', 1)",
            id=account.id,
        )
        return inboxes.add(tx, account.id, "other", None, None, "postroom.localhost", START)

    other = await db.write(add_other)
    pair = [submission(mine, "a", START), submission(other, "b", START, "q@example.com")]
    assert len(await db.write(submit, pair)) == 2


async def test_mails_that_are_taken_together_are_each_recorded_once(db: Database, inbox: Inbox) -> None:
    """Also where one of them had an end already, and whatever the order in which they are told."""
    sends = [submission(inbox, f"key-{n}", START, f"p{n}@d{n}.example") for n in range(3)]
    await db.write(submit, sends)
    claimed = await db.write(Claims(deliveries.MAIL).claim, [], 64, START)
    jobs = [await db.read(look_up, each, "postroom.localhost") for each in claimed]
    outcome = to_outcome(Receipt(250, "ok"), START, START + 5)
    accepted = [TriedMail(job, outcome, "http://x") for job in jobs if job is not None]
    assert len(accepted) == 3
    assert await db.write(deliveries.mark_bounced, accepted[1].job.delivery, "no such mailbox", START)
    bells = await db.write(record_tried, accepted[::-1])
    assert [bool(rung) for rung in bells] == [True, False, True]

    def read(tx: Tx) -> tuple[list[str], list[str], list[int]]:
        kinds = tx.all("select kind, message_id from events order by position")
        states = tx.all("select state from deliveries order by target")
        took = tx.all("select milliseconds from attempts")
        told = [f"{row['kind']} {row['message_id']}" for row in kinds]
        return told, [row["state"] for row in states], [row["milliseconds"] for row in took]

    told, states, took = await db.read(read)
    assert told == [f"message.sent {each.job.message.id}" for each in (accepted[2], accepted[0])]
    assert states == ["delivered", "bounced", "delivered"]
    assert took == [5, 5, 5]
