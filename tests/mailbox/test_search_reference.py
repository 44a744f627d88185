"""Through the server's own functions, both databases give the answers of a slow reading."""

import random

from msgspec.structs import replace

from postroom import ids
from postroom.accounts.reach import Reach
from postroom.mail.query import InvalidQuery, parse
from postroom.mailbox import attachments, documents, indexing, messages, search, threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import NewMessage
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.filled_inbox import document
from tests.mail.search_engines import matches
from tests.mail.test_index_entry import WORDS
from tests.mailbox.test_indexing import DOMAIN, index, new_inbox

MAILS, QUESTIONS = 80, 250


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


def find(tx: Tx, inbox: Inbox, q: str) -> list[str]:
    asked = search.ask(tx, Reach(inbox.account_id), parse(q), DOMAIN)
    page = search.find(tx, asked, None, MAILS, Links("", b"", 0), lambda: False)
    return [documents.decode(found.message).id for found in page.found]


async def test_random_questions_find_what_a_slow_reading_finds(db: Database) -> None:
    chance = random.Random(14)
    inbox = await new_inbox(db)
    stored = [await db.write(store, inbox, chance) for _ in range(MAILS)]
    await index(db)
    files = await db.read(attachments.list_of_messages, [each.id for each in stored])
    mails = [(each.id, indexing.to_searchable(each, files[each.id])) for each in stored]
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
