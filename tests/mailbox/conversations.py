"""Conversations whose mails come in any order and not all of them: how many of their threads are found."""

import asyncio
import random
import tempfile
from itertools import combinations
from pathlib import Path

from msgspec import Struct

from postroom.mailbox import related
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from postroom.storage.opening import open_database
from tests.conftest import settings
from tests.doubles import START
from tests.stored import make_inbox, put_mail

CONVERSATIONS = 12
MAILS = 8


class Recall(Struct, frozen=True):
    """Pairs of threads of one conversation, and how many are told directly, or by following the related."""

    pairs: int
    direct: int
    followed: int


def recall(seed: int) -> Recall:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_recall(Path(folder), random.Random(seed)))


async def _recall(folder: Path, chance: random.Random) -> Recall:
    db = await open_database(settings(folder), START)
    try:
        inbox = await db.write(make_inbox)
        found = [await _of_one(db, inbox, chance, number) for number in range(CONVERSATIONS)]
    finally:
        await db.close()
    return Recall(
        sum(each.pairs for each in found),
        sum(each.direct for each in found),
        sum(each.followed for each in found),
    )


async def _of_one(db: Database, inbox: Inbox, chance: random.Random, number: int) -> Recall:
    threads = sorted({await _put(db, inbox, fields) for fields in _mails(chance, number)})
    links = await db.read(related.list_of_threads, threads)
    pairs = list(combinations(threads, 2))
    direct = sum(other in links.get(one, ()) for one, other in pairs)
    return Recall(len(pairs), direct, sum(other in _reached(links, one) for one, other in pairs))


def _mails(chance: random.Random, number: int) -> list[dict[str, str]]:
    """Each names the mail that it answers and the one before; one of them never comes."""
    parents = [chance.randrange(place) for place in range(1, MAILS)]
    mails = [{"message_id": _id(number, 0)}]
    for place, parent in enumerate(parents, 1):
        named = [parent] if not parent else [parents[parent - 1], parent]
        references = " ".join(_id(number, each) for each in named)
        mails.append(
            {
                "message_id": _id(number, place),
                "in_reply_to": _id(number, parent),
                "references": references,
            }
        )
    mails.pop(chance.randrange(1, MAILS))
    chance.shuffle(mails)
    return mails


def _id(number: int, place: int) -> str:
    return f"<{number}-{place}@there.example>"


async def _put(db: Database, inbox: Inbox, fields: dict[str, str]) -> str:
    def work(tx: Tx) -> str:
        return put_mail(tx, inbox, "Hello", START, **fields).thread_id

    return await db.write(work)


def _reached(links: dict[str, list[str]], start: str) -> set[str]:
    reached, new = {start}, [start]
    while new:
        new = [other for one in new for other in links.get(one, ()) if other not in reached]
        reached.update(new)
    return reached
