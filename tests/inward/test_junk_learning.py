"""The learner of the junk filter: a death, a reset, and the examples of another teacher."""

import asyncio
from pathlib import Path

import pytest

from postroom.inward.junk import examples, learning, models
from postroom.inward.junk.models import Learned
from postroom.net.dns import Resolver
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from postroom_mail.junk import model
from postroom_mail.junk.model import Example, Taught
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.end_to_end.test_large_inbox import ExplainingTx

ACCOUNT, ME, OTHER = "acc_1", "usr_me", "usr_other"


class Killed(Exception):
    """Ends the learner where a kill would."""


@pytest.fixture
async def resources(database_url: str, tmp_path: Path, clock: FakeClock) -> Resources:
    config = settings(tmp_path, DATABASE_URL=database_url)
    db = await open_database(config, START)
    return Resources(config, db, LocalBlobs(tmp_path / "blobs"), clock, Resolver(), asyncio.Event())


def raw(number: int) -> bytes:
    return b"From: a@hulls.example\r\nSubject: Digest %d\r\n\r\nbarnacle scraping news %d\r\n" % (
        number,
        number,
    )


async def tell(resources: Resources, numbers: range, is_junk: bool = True) -> None:
    def record(tx: Tx) -> None:
        lessons = [
            examples.to_lesson(ACCOUNT, raw(number), learning.read_features(raw(number)))
            for number in numbers
        ]
        examples.record_lessons(tx, ACCOUNT, ME, lessons, is_junk, resources.now())

    await resources.db.write(record)


async def learned(resources: Resources) -> Learned:
    return await resources.db.read(models.read, ACCOUNT, ME)


async def test_after_a_death_or_a_reset_nothing_is_lost_and_nothing_learned_twice(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(resources, range(3))
    store = learning.store

    def dies(tx: Tx, lesson: learning.LearnedBatch, now: int) -> None:
        store(tx, lesson, now)
        raise Killed

    monkeypatch.setattr(learning, "store", dies)
    with pytest.raises(Killed):
        await learning.learn_some(resources)
    assert (await resources.db.read(examples.count, ACCOUNT))["waiting"] == 3
    assert (await learned(resources)).changed_at == 0

    told: list[learning.LearnedBatch] = []

    def keeps(tx: Tx, lesson: learning.LearnedBatch, now: int) -> None:
        told.append(lesson)
        store(tx, lesson, now)

    monkeypatch.setattr(learning, "store", keeps)
    assert await learning.learn_some(resources)
    after = await learned(resources)
    assert (await resources.db.read(examples.count, ACCOUNT))["waiting"] == 0
    known = [Example(learning.read_features(raw(number)), True) for number in range(3)]
    once = model.learn(model.load_start(), Taught(model.no_weights()), known)
    for each in known:
        assert after.taught.score(each.features) == pytest.approx(once.score(each.features), abs=0.2)
    assert not await learning.learn_some(resources)
    await resources.db.write(store, told[0], resources.now())  # as a node that was slow, or died after it
    again = await learned(resources)
    assert (again.taught.weights, again.changed_at) == (after.taught.weights, after.changed_at)

    def forget(tx: Tx) -> None:
        examples.forget(tx, ACCOUNT)
        models.forget(tx, ACCOUNT)

    def reset_first(tx: Tx, lesson: learning.LearnedBatch, now: int) -> None:
        forget(tx)
        store(tx, lesson, now)

    monkeypatch.setattr(learning, "store", reset_first)
    await tell(resources, range(4, 6))
    await learning.learn_some(resources)
    assert await resources.db.read(examples.count, ACCOUNT) == {"junk": 0, "wanted": 0, "waiting": 0}
    assert (await learned(resources)).changed_at == 0


async def test_the_newest_examples_of_a_teacher_come_from_an_index_however_many_others_there_are(
    resources: Resources, database_url: str
) -> None:
    def record(tx: Tx, is_junk: bool, teacher: str, count: int) -> None:
        lessons = [examples.Lesson(f"{teacher}{is_junk}{n}", b"\0\0\0\0") for n in range(count)]
        examples.record_lessons(tx, ACCOUNT, teacher, lessons, is_junk, START)
        tx.run("update junk_examples set learned_at = :now", now=START)
        if database_url:
            tx.run("analyze junk_examples")

    await resources.db.write(record, True, OTHER, 4_000)
    await resources.db.write(record, False, ME, 2)
    await resources.db.write(record, True, ME, 2)

    def explain(tx: Tx) -> list[str]:
        explaining = ExplainingTx(tx, bool(database_url))
        assert len(examples.list_to_repeat(explaining, ACCOUNT, ME)) == 4
        return explaining.steps

    steps = " / ".join(await resources.db.read(explain))
    assert "junk_examples_to_repeat" in steps, steps
    assert "Sort" not in steps, steps
    assert "TEMP B-TREE" not in steps, steps
    await resources.db.write(examples.mark_learned, ACCOUNT, OTHER, [], START)
    kept = await resources.db.read(examples.list_to_repeat, ACCOUNT, OTHER)
    assert len(kept) == 4_000 - 1_000, "a thousand at a time are forgotten"
