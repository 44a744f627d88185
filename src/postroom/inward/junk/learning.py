"""Learns what people say of junk, in the background: some examples of one teacher at a time.

The teacher's newest examples are learned again with the new ones: otherwise a folder of junk, learned after a
folder of wanted email, would undo it. The weights and the mark of the examples are stored in one transaction:
after a crash the same are learned again, from the weights before. If the filter was reset meanwhile, or
another node has learned, nothing is stored.
"""

from collections.abc import Sequence

from msgspec import Struct

from postroom.clock import SECOND
from postroom.errors import NotFound
from postroom.inward.junk import examples, models
from postroom.inward.junk.examples import TaughtExample
from postroom.mailbox import raw_mails
from postroom.processes import pools
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.blobs import DamagedBlob
from postroom.storage.database import Tx
from postroom_mail.html.page import read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.model import Example, Taught
from postroom_mail.mime.parse import parse_mail

TOGETHER = 50
IDLE_SECONDS = 5.0
LEASE, LEASE_HELD = "junk", 60 * SECOND


class LearnedBatch(Struct, frozen=True):
    """What was learned at once, from the weights of `changed_at`: the new ones, and the examples."""

    account_id: str
    teacher: str
    changed_at: int
    weights: bytes
    agreed: int
    contradicted: int
    learned: Sequence[tuple[TaughtExample, bytes]]


async def learn_all(resources: Resources) -> None:
    """Runs until cancelled. One node learns for all."""
    bell = resources.db.listen(examples.BELL)
    try:
        while True:
            if not await learn_some(resources):
                await bell.wait(IDLE_SECONDS)
    finally:
        bell.close()


async def learn_some(resources: Resources) -> bool:
    """Return False if nothing waits, or another node learns."""
    waiting = await resources.db.read(examples.find_teacher)
    if waiting is None or not await leader_leases.hold(resources, LEASE, LEASE_HELD):
        return False
    account_id, teacher = waiting
    to_learn = await resources.db.read(examples.list_to_learn, account_id, teacher, TOGETHER)
    found = [(each, await _features(resources, each)) for each in to_learn]
    before = await resources.db.read(models.read, account_id, teacher)
    old = await resources.db.read(examples.list_to_repeat, account_id, teacher)
    weights, taught = await pools.READING.run(_learn, before.taught, found, old)
    lesson = LearnedBatch(
        account_id,
        teacher,
        before.changed_at,
        weights,
        taught.agreed,
        taught.contradicted,
        [(each, model.encode_features(numbers)) for each, numbers in found],
    )
    await resources.db.write(store, lesson, resources.now())
    return True


async def _features(resources: Resources, each: TaughtExample) -> tuple[int, ...]:
    """Return the features of a message; none if it is gone, so that it teaches nothing."""
    if each.features is not None:
        return model.decode_features(each.features)
    try:
        raw = await raw_mails.read(resources, each.message_id, with_trace=False)
    except (NotFound, DamagedBlob):
        return ()
    return await pools.READING.run(read_features, raw)


def read_features(raw: bytes) -> tuple[int, ...]:
    mail = parse_mail(raw)
    return features.read_features(raw, mail, read_page(mail.body_html)).whole


def _learn(
    before: Taught,
    new: Sequence[tuple[TaughtExample, tuple[int, ...]]],
    old: Sequence[TaughtExample],
) -> tuple[bytes, Taught]:
    learned = [Example(numbers, each.is_junk) for each, numbers in new]
    repeated = [Example(model.decode_features(each.features or b""), each.is_junk) for each in old]
    taught = model.learn(model.load_start(), before, learned, repeated)
    return model.encode(taught.weights), taught


def store(tx: Tx, lesson: LearnedBatch, now: int) -> None:
    account_id, teacher = lesson.account_id, lesson.teacher
    if models.find_change(tx, account_id, teacher) != lesson.changed_at:
        return
    if examples.mark_learned(tx, account_id, teacher, lesson.learned, now):
        models.store(tx, account_id, teacher, lesson.weights, lesson.agreed, lesson.contradicted, now)
