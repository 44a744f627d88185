"""Through the server's own functions, both databases give the answers of a slow reading."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.mailbox import attachments, documents, labels, messages, threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import NewMessage
from postroom.mailbox.search import contents, filters, indexing, message_search
from postroom.storage.database import Database, Tx
from postroom_mail.search.query import InvalidQuery, parse
from tests.doubles import START
from tests.filled_inbox import document
from tests.mailbox.test_indexing import DOMAIN, index, new_inbox
from tests.storage.search_engines import matches
from tests.storage.test_search_engines import WORDS

MAILS, QUESTIONS = 40, 120


def some_text(chance: random.Random, most: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(0, most)))


def question(chance: random.Random) -> str:
    """Of one to four terms, of every kind."""
    terms = []
    for _ in range(chance.randint(1, 4)):
        word = chance.choice(WORDS)
        term = chance.choice(
            [word, word, word[: chance.randint(1, len(word))] + "*", f'"{some_text(chance, 3)}"']
        )
        field = chance.choice(["", "", "", "from:", "to:", "subject:"])
        terms.append(chance.choice(["", "", "", "-"]) + field + term + chance.choice([" ", " ", " OR "]))
    return "".join(terms).removesuffix("OR ")


def store(tx: Tx, inbox: Inbox, chance: random.Random) -> documents.Document:
    thread = threads.new(inbox, "", is_read=False, now=START)
    threads.add_all(tx, [thread])
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, START),
        thread_id=thread.id,
        subject=some_text(chance, 4),
        from_addr=some_text(chance, 2),
        header_to=some_text(chance, 2),
        body_text=some_text(chance, 12),
        reply_text="",
    )
    new = NewMessage(written, "received", "a@example.com", True, b"", None, START, 0)
    messages.add_all(tx, [new])
    file = Attachment("notes.txt", 0, "text/plain", 1, "text", some_text(chance, 4))
    attachments.add_all(tx, [(written.id, file)])
    indexing.enqueue_all(tx, [written.id])
    return written


def find(tx: Tx, inbox: Inbox, q: str, limit: int = MAILS) -> list[str]:
    """Of all pages."""
    asked = message_search.ask(tx, Scope(inbox.account_id), parse(q), DOMAIN)
    found: list[str] = []
    cursor = None
    while True:
        page = message_search.find(tx, asked, cursor, limit, Links("", 0, b""), lambda: False)
        found += [documents.decode(each.message).id for each in page.found]
        if page.next is None:
            return found
        cursor = page.next


@pytest.mark.sqlite_alone
async def test_random_questions_find_what_a_slow_reading_finds(db: Database) -> None:
    chance = random.Random(14)
    inbox = await new_inbox(db)
    stored = [await db.write(store, inbox, chance) for _ in range(MAILS)]
    await index(db)
    files = await db.read(attachments.list_of_messages, [each.id for each in stored])
    mails = [(each.id, contents.to_searchable(each, files[each.id])) for each in stored]
    answered = found_any = 0
    for _ in range(QUESTIONS):
        q = question(chance)
        try:
            asked = parse(q)
        except InvalidQuery:
            continue
        wanted = [message_id for message_id, mail in mails if matches(asked, mail)][::-1]
        assert await db.read(find, inbox, q) == wanted, q
        answered += 1
        found_any += bool(wanted)
    assert answered > QUESTIONS // 2
    assert found_any > QUESTIONS // 5


DAY = 86_400_000
FILTERS: dict[str, Callable[["State"], bool]] = {
    "is:unread": lambda state: not state.is_read,
    "label:Blue": lambda state: "blue" in state.labels,
    "label:red": lambda state: "red" in state.labels,
    "before:2026-11-01": lambda state: state.created_at < BOUND,
    "after:2026-11-01": lambda state: state.created_at >= BOUND,
    "after:1815-06-18": lambda state: True,
    "has:attachment": lambda state: True,
    "is:sent": lambda state: False,
}
BOUND = 1_793_491_200_000  # 2026-11-01


@dataclass(frozen=True, slots=True)
class State:
    created_at: int
    is_read: bool
    labels: set[str]


def change(tx: Tx, inbox: Inbox, written: documents.Document, chance: random.Random) -> State:
    """Some threads get labels, some are read, and each message is of a day of its own."""
    state = State(
        BOUND + chance.randint(-40, 40) * DAY + chance.choice([0, DAY - 1]),
        chance.random() < 0.5,
        {label for label in ("blue", "red") if chance.random() < 0.4},
    )
    tx.run(
        "update messages set created_at = :created_at where id = :id",
        id=written.id,
        created_at=state.created_at,
    )
    tx.run("update threads set is_read = :flag where id = :id", id=written.thread_id, flag=int(state.is_read))
    labels.change(
        tx, threads.get(tx, Scope(inbox.account_id), written.thread_id), sorted(state.labels), [], START
    )
    return state


WAYS = {
    "each of the few": (4_096, 512),
    "from one of the few to the next": (4_096, 2),
    "all with the words": (4, 2),
}


@pytest.mark.share(2)
async def test_random_filters_find_what_a_slow_reading_finds(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "FIRST_CHUNK", 3)
    monkeypatch.setattr(message_search, "LARGEST_CHUNK", 8)
    chance = random.Random(16)
    inbox = await new_inbox(db)
    stored = [await db.write(store, inbox, chance) for _ in range(30)]
    states = {each.id: await db.write(change, inbox, each, chance) for each in stored}
    await index(db)
    files = await db.read(attachments.list_of_messages, [each.id for each in stored])
    mails = [(each.id, contents.to_searchable(each, files[each.id])) for each in stored]
    for _ in range(25):
        sought = {
            name: chance.random() < 0.7 for name in chance.sample(sorted(FILTERS), chance.randint(1, 2))
        }
        joint = chance.choice([" ", " OR "])
        written = joint.join(("" if is_wanted else "-") + name for name, is_wanted in sought.items())
        word = chance.choice(["", "", chance.choice(WORDS)[:1] + "*"])
        joined = all if joint == " " else any
        wanted = [
            message_id
            for message_id, mail in mails
            if joined(FILTERS[name](states[message_id]) == is_wanted for name, is_wanted in sought.items())
            and (not word or matches(parse(word), mail))
        ]
        for way, (few, looked_at_each) in WAYS.items():
            monkeypatch.setattr(filters, "FEW", few)
            monkeypatch.setattr(message_search, "LOOKED_AT_EACH", looked_at_each)
            found = await db.read(find, inbox, f"{word} {written}", 7)
            assert sorted(found) == sorted(wanted), f"{word} {written}: {way}"
            moments = [states[message_id].created_at for message_id in found]
            assert moments == sorted(moments, reverse=True), f"{word} {written}: {way}"
