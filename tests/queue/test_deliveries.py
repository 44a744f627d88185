"""The queue: what is due is claimed once, lane by lane, for a lease; every attempt is written down."""

import pytest

from postroom.clock import HOUR, MINUTE
from postroom.mailbox import messages
from postroom.mailbox.messages import Message
from postroom.queue import deliveries
from postroom.queue.claims import Claims
from postroom.queue.deliveries import LANE_WIDTH, WEBHOOK
from postroom.queue.leases import LEASE
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import find_delivery, make_inbox, put_delivery, put_mail


@pytest.fixture
async def message(db: Database) -> Message:
    return await db.write(lambda tx: put_mail(tx, make_inbox(tx)))


@pytest.mark.sqlite_alone
async def test_what_is_due_is_claimed_once_until_its_lease_ends(db: Database, message: Message) -> None:
    due = await db.write(put_delivery, message)
    await db.write(put_delivery, message, "later@there.example", due_at=START + 1)
    claimed = await db.write(Claims(deliveries.MAIL).claim, [], 10, START)
    assert [(each.id, each.attempts, each.due_at) for each in claimed] == [(due, 1, START + LEASE)]
    assert await db.write(Claims(deliveries.WEBHOOK).claim, [], 10, START + HOUR) == []
    others = await db.write(Claims(deliveries.MAIL).claim, [], 10, START + LEASE - 1)
    assert [each.target for each in others] == ["later@there.example"]
    again = await db.write(Claims(deliveries.MAIL).claim, [], 10, START + LEASE)
    assert [(each.id, each.attempts) for each in again] == [(due, 2)]


async def test_a_full_lane_hides_nobody_and_the_limit_holds(db: Database, message: Message) -> None:
    def fill(tx: Tx) -> None:
        for number in range(LANE_WIDTH + 3):
            put_delivery(tx, message, f"{number}@slow.example", lane="slow", due_at=START - 100 + number)
        put_delivery(tx, message, "quick@other.example", lane="other", due_at=START)

    await db.write(fill)
    claimed = await db.write(Claims(deliveries.MAIL).claim, [], LANE_WIDTH + 2, START)
    assert [each.lane for each in claimed] == ["slow"] * LANE_WIDTH + ["other"]
    assert await db.write(Claims(deliveries.MAIL).claim, claimed, 10, START) == []
    assert len(await db.write(Claims(deliveries.MAIL).claim, claimed[1:], 10, START)) == 1
    assert len(await db.write(Claims(deliveries.MAIL).claim, [], 2, START)) == 2


@pytest.mark.sqlite_alone
async def test_a_lease_is_renewed_only_while_its_attempt_has_no_answer(
    db: Database, message: Message
) -> None:
    await db.write(put_delivery, message)
    (running,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START)
    await db.write(deliveries.renew, [running], START + 10)
    assert (await db.read(find_delivery, running.id)).due_at == START + 10 + LEASE
    await db.write(deliveries.record_answer, running, 451, "later", 3)
    await db.write(deliveries.try_again_at, running, START + HOUR, 451, "later")
    await db.write(deliveries.renew, [running], START + 20)
    waiting = await db.read(find_delivery, running.id)
    assert (waiting.due_at, waiting.waits_used, waiting.last_code) == (START + HOUR, 1, 451)


@pytest.mark.sqlite_alone
async def test_an_attempt_of_an_older_claim_renews_nothing(db: Database, message: Message) -> None:
    await db.write(put_delivery, message)
    (first,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START)
    (second,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START + LEASE)
    await db.write(deliveries.renew, [first], START + HOUR)
    assert (await db.read(find_delivery, second.id)).due_at == START + 2 * LEASE


@pytest.mark.sqlite_alone
async def test_what_is_finished_or_cancelled_stays_so_but_an_acceptance_counts(
    db: Database, message: Message
) -> None:
    await db.write(put_delivery, message)
    (running,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START)
    assert await db.write(deliveries.cancel, message.id, START) == 1
    assert not await db.write(deliveries.finish, running, deliveries.FAILED, 550, "no", START)
    await db.write(deliveries.try_again_at, running, START, None, "again")
    assert (await db.read(find_delivery, running.id)).state == deliveries.CANCELLED
    assert await db.write(deliveries.finish, running, deliveries.DONE, 250, "ok", START)
    assert not await db.write(deliveries.finish, running, deliveries.DONE, 250, "ok", START)
    assert await db.write(deliveries.cancel, message.id, START) == 0


@pytest.mark.sqlite_alone
async def test_a_bounce_is_known_once_and_never_of_what_failed(db: Database, message: Message) -> None:
    await db.write(put_delivery, message)
    (sent,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START)
    await db.write(deliveries.finish, sent, deliveries.DONE, 250, "ok", START)
    assert await db.write(deliveries.mark_bounced, sent, "no such user", START)
    assert not await db.write(deliveries.mark_bounced, sent, "no such user", START)
    await db.write(put_delivery, message, "carol@there.example", position=1)
    (failed,) = await db.write(Claims(deliveries.MAIL).claim, [], 1, START)
    await db.write(deliveries.finish, failed, deliveries.FAILED, 550, "no", START)
    assert not await db.write(deliveries.mark_bounced, failed, "late", START)


async def test_starting_again_takes_all_but_what_is_delivered_or_under_way(
    db: Database, message: Message
) -> None:
    for number, name in enumerate(("done", "failed", "running")):
        await db.write(put_delivery, message, f"{name}@x.example", position=number)
    done, failed, running = await db.write(Claims(deliveries.MAIL).claim, [], 3, START)
    await db.write(deliveries.record_answer, done, 250, "ok", 1)
    await db.write(deliveries.finish, done, deliveries.DONE, 250, "ok", START)
    await db.write(deliveries.record_answer, failed, 550, "no", 1)
    await db.write(deliveries.finish, failed, deliveries.FAILED, 550, "no", START)
    assert await db.write(deliveries.start_again, message.id, START + 1) == ["failed@x.example"]
    again = await db.read(find_delivery, failed.id)
    assert (again.state, again.due_at, again.waits_used) == (deliveries.PENDING, START + 1, 0)
    assert running.target in await db.write(deliveries.start_again, message.id, START + LEASE)


@pytest.mark.sqlite_alone
async def test_a_message_is_sent_when_all_have_it_and_failed_when_one_never_will(
    db: Database, message: Message
) -> None:
    for number in range(2):
        await db.write(put_delivery, message, f"{number}@x.example", position=number)
    first, second = await db.write(Claims(deliveries.MAIL).claim, [], 2, START)
    assert await db.write(deliveries.settle, message.id) == messages.PENDING
    await db.write(deliveries.finish, first, deliveries.DONE, 250, "ok", START)
    assert await db.write(deliveries.settle, message.id) is None
    await db.write(deliveries.finish, second, deliveries.DONE, 250, "ok", START)
    assert await db.write(deliveries.settle, message.id) == messages.SENT
    await db.write(deliveries.mark_bounced, second, "gone", START)
    assert await db.write(deliveries.settle, message.id) == messages.FAILED
    assert await db.write(deliveries.settle, message.id) is None


@pytest.mark.sqlite_alone
async def test_the_oldest_that_waits_is_of_either_kind(db: Database, message: Message) -> None:
    assert await db.read(deliveries.oldest_due_at, START) == START
    await db.write(put_delivery, message, due_at=START + MINUTE)
    assert await db.read(deliveries.oldest_due_at, START) == START
    await db.write(put_delivery, message, "http://x", kind=WEBHOOK, due_at=START - MINUTE)
    assert await db.read(deliveries.oldest_due_at, START) == START - MINUTE
