"""Learns what people say of junk, in the background: some examples of one teacher at a time.

The teacher's newest examples are learned again with the new ones: otherwise a folder of junk, learned after a
folder of wanted email, would undo it. The weights and the mark of the examples are stored in one transaction:
after a crash the same are learned again, from the weights before.
"""

from collections.abc import Sequence

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
from postroom_mail.junk.model import Example
from postroom_mail.mime.parse import parse_mail

TOGETHER = 50
IDLE_SECONDS = 5.0
DUTY, DUTY_LENGTH = "junk", 60 * SECOND


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
    """False if nothing waits, or another node learns."""
    waiting = await resources.db.read(examples.find_teacher)
    if waiting is None or not await leader_leases.hold(resources, DUTY, DUTY_LENGTH):
        return False
    account_id, teacher = waiting
    told = await resources.db.read(examples.list_to_learn, account_id, teacher, TOGETHER)
    found = [(each, await _features(resources, each)) for each in told]
    before = await resources.db.read(models.read, account_id, teacher)
    old = await resources.db.read(examples.list_to_repeat, account_id, teacher)
    weights = await pools.READING.run(_learned, before, found, old)
    learned = [(each, model.encode_features(numbers)) for each, numbers in found]
    await resources.db.write(_store, account_id, teacher, weights, learned, resources.now())
    return True


async def _features(resources: Resources, each: TaughtExample) -> tuple[int, ...]:
    """Of a message that is gone: none, and it teaches nothing."""
    if each.features is not None:
        return model.decode_features(each.features)
    try:
        raw = await raw_mails.read(resources, each.message_id, with_trace=False)
    except (NotFound, DamagedBlob):
        return ()
    return await pools.READING.run(read_features, raw)


def read_features(raw: bytes) -> tuple[int, ...]:
    mail = parse_mail(raw)
    page = read_page(mail.body_html)
    return features.features(raw, mail, mail.body_text or page.text, page)


def _learned(
    before: "model.Weights",
    new: Sequence[tuple[TaughtExample, tuple[int, ...]]],
    old: Sequence[TaughtExample],
) -> bytes:
    known = [Example(numbers, each.is_junk) for each, numbers in new if numbers]
    known += [Example(model.decode_features(each.features or b""), each.is_junk) for each in old]
    model.learn(model.load_start(), before, known)
    return model.encode(before)


def _store(
    tx: Tx,
    account_id: str,
    teacher: str,
    weights: bytes,
    learned: Sequence[tuple[TaughtExample, bytes]],
    now: int,
) -> None:
    models.store(tx, account_id, teacher, weights, now)
    examples.mark_learned(tx, account_id, teacher, learned, now)
