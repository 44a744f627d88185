"""The recorder: an outcome is written once, however often that has to be tried, by this run or the next."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from postroom.clock import HOUR
from postroom.mailbox.messages import Message
from postroom.net.dns import Resolver
from postroom.queue import outcomes, recording
from postroom.queue.claims import Claims
from postroom.queue.deliveries import DONE, FAILED, MAIL, PENDING, Delivery
from postroom.queue.leases import LEASE
from postroom.queue.outcomes import Outcome, TriedDelivery
from postroom.queue.recording import JOURNAL_NAME, Recorder
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database
from postroom.storage.journal import Journal
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.stored import find_delivery, make_inbox, put_delivery, put_mail
from tests.waiting import until

PATIENCE_SECONDS = 60


@pytest.fixture
async def message(db: Database) -> Message:
    return await db.write(lambda tx: put_mail(tx, make_inbox(tx)))


@pytest.fixture
async def resources(db: Database, tmp_path: Path, clock: FakeClock) -> Resources:
    blobs, resolver = LocalBlobs(tmp_path / "blobs"), cast(Resolver, None)
    return Resources(settings(tmp_path), db, blobs, clock, resolver, asyncio.Event())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / JOURNAL_NAME)


async def claimed(db: Database, message: Message, now: int = START) -> Delivery:
    await db.write(put_delivery, message)
    (delivery,) = await db.write(Claims(MAIL).claim, [], 1, now)
    return delivery


def answer(code: int = 250, **more: Any) -> Outcome:
    fields: dict[str, Any] = {"is_success": code == 250, "is_permanent": code == 550} | more
    return Outcome(code=code, text=f"said {code}", milliseconds=7, ended_at=START, **fields)


@dataclass
class Writer:
    """Fails as often as told, then writes."""

    db: Database
    tried: TriedDelivery
    failures: int
    states: list[str | None] = field(default_factory=list)

    async def write(self) -> list[str]:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the disk is gone for a moment")
        self.states.append(await self.db.write(outcomes.record, self.tried))
        return ["rung"]

    async def write_again(self, tried: TriedDelivery) -> list[str]:
        assert tried == self.tried
        return await self.write()


@pytest.fixture
async def subscription(db: Database) -> AsyncIterator[Any]:
    subscription = db.listen("rung")
    while await subscription.wait(0.3):
        pass  # whoever has just connected hears every bell once
    yield subscription
    subscription.close()


@pytest.mark.sqlite_alone
async def test_an_outcome_is_tried_until_it_is_written_and_lies_in_the_journal_meanwhile(
    resources: Resources, journal: Journal, message: Message, subscription: Any
) -> None:
    tried = TriedDelivery(await claimed(resources.db, message), answer())
    seen: list[int] = []

    async def write() -> list[str]:
        seen.append(len(journal.read()))
        return await writer.write()

    writer = Writer(resources.db, tried, failures=2)
    await Recorder(resources, journal).record(tried, write)
    assert (seen, writer.states, journal.read()) == ([0, 1, 1], [DONE], [])
    assert await subscription.wait(PATIENCE_SECONDS)
    assert (await resources.db.read(find_delivery, tried.delivery.id)).state == DONE


@pytest.mark.sqlite_alone
async def test_a_stop_leaves_the_outcome_to_the_next_run(
    resources: Resources, journal: Journal, message: Message
) -> None:
    tried = TriedDelivery(await claimed(resources.db, message), answer(host="mx.there.example"))
    stuck = asyncio.Event()

    async def never() -> list[str]:
        stuck.set()
        await asyncio.Event().wait()
        return []

    task = asyncio.create_task(Recorder(resources, journal).record(tried, never))
    await stuck.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    writer, following = Writer(resources.db, tried, failures=1), Recorder(resources, journal)
    for _ in range(2):
        await following.catch_up({MAIL: writer.write_again})
    assert (writer.states, journal.read()) == ([DONE], [])


def is_kept(journal: Journal, tried: TriedDelivery) -> bool:
    return any(tried.delivery.id.encode() in record for record in journal.read())


@pytest.mark.sqlite_alone
async def test_what_cannot_be_written_stays_for_the_run_after_the_next(
    resources: Resources, journal: Journal, message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "FIRST_PAUSE_SECONDS", 0.001)
    first = TriedDelivery(await claimed(resources.db, message), answer())
    second = TriedDelivery(await claimed(resources.db, message), answer())
    recorder = Recorder(resources, journal)
    for tried in (first, second):
        task = asyncio.create_task(recorder.record(tried, Writer(resources.db, tried, 1_000_000).write))
        await until(partial(is_kept, journal, tried))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    journal.append(b"no outcome")

    async def write(tried: TriedDelivery) -> list[str]:
        if tried == first:
            raise RuntimeError("a fault of ours")
        return await Writer(resources.db, second, failures=0).write()

    await Recorder(resources, journal).catch_up({MAIL: write})
    (left,) = journal.read()
    assert first.delivery.id.encode() in left
    assert (await resources.db.read(find_delivery, second.delivery.id)).state == DONE


@pytest.mark.sqlite_alone
async def test_what_never_left_the_house_is_not_kept(
    resources: Resources, journal: Journal, message: Message
) -> None:
    tried = TriedDelivery(await claimed(resources.db, message), answer())
    writer = Writer(resources.db, tried, failures=99)
    task = asyncio.create_task(Recorder(resources, journal).record(tried, writer.write, has_left=False))
    await until(lambda: writer.failures <= 97)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert journal.read() == []


@pytest.mark.sqlite_alone
async def test_an_outcome_counts_once_and_says_what_becomes_of_the_delivery(
    db: Database, message: Message
) -> None:
    for outcome, state in ((answer(), DONE), (answer(550), FAILED), (answer(451), PENDING)):
        delivery = await claimed(db, message)
        tried = TriedDelivery(delivery, outcome)
        assert await db.write(outcomes.record, tried) == state
        after = await db.read(find_delivery, delivery.id)
        assert (after.state, after.last_code, after.last_reply) == (state, outcome.code, outcome.text)
        assert await db.write(outcomes.record, tried) is None
        assert await db.read(find_delivery, delivery.id) == after


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("code", [451, 550])
async def test_a_failure_that_comes_late_leaves_the_attempt_alone_that_is_under_way(
    db: Database, message: Message, code: int
) -> None:
    first = await claimed(db, message)
    (second,) = await db.write(Claims(MAIL).claim, [], 1, START + LEASE)
    assert second.id == first.id
    assert await db.write(outcomes.record, TriedDelivery(first, answer(code))) is None
    assert await db.read(find_delivery, second.id) == second
    assert await db.write(outcomes.record, TriedDelivery(second, answer())) == DONE


@pytest.mark.sqlite_alone
async def test_a_success_that_comes_late_counts_although_another_attempt_is_under_way(
    db: Database, message: Message
) -> None:
    first = await claimed(db, message)
    (second,) = await db.write(Claims(MAIL).claim, [], 1, START + LEASE)
    assert await db.write(outcomes.record, TriedDelivery(first, answer())) == DONE
    assert await db.write(outcomes.record, TriedDelivery(second, answer(550))) is None
    assert (await db.read(find_delivery, second.id)).state == DONE


@pytest.mark.sqlite_alone
async def test_the_other_side_may_ask_for_a_longer_wait(db: Database, message: Message) -> None:
    delivery = await claimed(db, message)
    asked = answer(451, retry_after_seconds=3600)
    assert await db.write(outcomes.record, TriedDelivery(delivery, asked)) == PENDING
    assert (await db.read(find_delivery, delivery.id)).due_at == START + HOUR
