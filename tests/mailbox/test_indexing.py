"""The search index keeps up with the messages: through kills, deletions, upgrades and new tokens."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.mailbox import documents, inboxes, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.messages import NewMessage
from postroom.mailbox.search import index_upkeep, indexing, message_search, removals
from postroom.mailbox.search.batch import Batch
from postroom.mailbox.search.indexing import IndexStep
from postroom.mailbox.search.pace import RESTS, RESTS_IN_A_CROWD, Pace
from postroom.storage.database import Database, Tx
from postroom.storage.engines import sqlite_index
from postroom.storage.opening import open_database
from postroom.upkeep import deletion
from postroom_mail.search import tokens
from postroom_mail.search.query import parse
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.filled_inbox import document

DOMAIN = "postroom.localhost"


class Killed(Exception):
    """The process dies here."""


async def new_inbox(db: Database) -> Inbox:
    account = await db.write(accounts.add, "someone", "free", START)
    return await db.write(inboxes.add, account.id, "sales", None, None, DOMAIN, START)


def store(tx: Tx, inbox: Inbox, subject: str, is_asked_for: bool = True, now: int = START) -> str:
    thread = threads.new(inbox, subject, is_read=False, now=now)
    threads.add_all(tx, [thread])
    written = replace(
        document(inbox.id, inbox.address),
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread.id,
        subject=subject,
    )
    new = NewMessage(
        document=written,
        status="received",
        from_address="alice@example.com",
        has_attachments=False,
        raw=b"",
        blob=None,
        created_at=now,
        size_bytes=0,
    )
    messages.add_all(tx, [new])
    if is_asked_for:
        indexing.enqueue_all(tx, [written.id])
    return written.id


async def index(db: Database, holder: str = "node", now: int = START) -> None:
    while await indexing.step(db, holder, now):
        pass


def find(tx: Tx, inbox: Inbox, q: str) -> list[str]:
    question = message_search.ask(tx, Scope(inbox.account_id), parse(q), DOMAIN)
    page = message_search.find(tx, question, None, 100, Links("", 0, b""), lambda: False)
    return [documents.decode(found.message).subject for found in page.found]


async def entries(db: Database) -> int:
    """How many documents the index itself holds for a word that each mail has."""
    rows = await db.read(lambda tx: tx.fulltext.find(parse("words"), [indexing.realm_of(1)], 2**62, 10_000))
    return len(rows)


@pytest.mark.sqlite_alone
async def test_what_was_stored_is_found_once(db: Database) -> None:
    inbox = await new_inbox(db)
    for number in range(3):
        await db.write(store, inbox, f"Report {number}")
    await index(db)
    assert await db.read(find, inbox, "report") == ["Report 2", "Report 1", "Report 0"]
    assert await db.read(indexing.progress) == indexing.Progress(0, 100)


@pytest.mark.sqlite_alone
async def test_a_kill_between_reading_and_storing_misses_and_doubles_nothing(db: Database) -> None:
    inbox = await new_inbox(db)
    await db.write(store, inbox, "Report")
    await indexing.step(db, "node", START)  # the tokens are new
    await indexing.step(db, "node", START)  # the pod gets its number
    batch = await db.read(indexing.prepare)
    assert batch is not None

    def die(tx: Tx) -> None:
        indexing.store(tx, batch, "node", START)
        raise Killed

    with pytest.raises(Killed):
        await db.write_index(die)
    assert await db.read(find, inbox, "report") == []
    await index(db)
    await db.write_index(indexing.store, batch, "node", START)  # what another node had prepared meanwhile
    assert await db.read(find, inbox, "report") == ["Report"]
    assert await entries(db) == 1


@pytest.mark.sqlite_alone
async def test_of_long_mails_a_step_takes_a_part_and_says_so(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await new_inbox(db)
    await index(db)
    monkeypatch.setattr(indexing, "BATCH_CHARACTERS", 0)
    for subject in ("One", "Two"):
        await db.write(store, inbox, subject)
    await indexing.step(db, "node", START)  # the pod gets its number
    steps = [await indexing.step(db, "node", START) for _ in range(3)]
    assert steps == [IndexStep.PART, IndexStep.SOME, IndexStep.NOTHING]


async def test_what_is_removed_while_it_is_being_indexed_is_not_found(db: Database) -> None:
    inbox = await new_inbox(db)
    message_id = await db.write(store, inbox, "Report")
    await indexing.step(db, "node", START)
    await indexing.step(db, "node", START)
    batch = await db.read(indexing.prepare)
    assert batch is not None

    def remove(tx: Tx) -> None:
        tx.run("delete from messages where id = :id", id=message_id)
        indexing.enqueue_all(tx, [message_id])

    await db.write(remove)
    await db.write_index(indexing.store, batch, "node", START)
    await index(db)
    assert await entries(db) == 0
    assert await db.read(lambda tx: tx.all("select * from search_documents")) == []


async def test_the_words_of_removed_mail_are_taken_out_of_the_index(db: Database) -> None:
    """Also of an inbox that is gone, and of mail that was changed before."""
    inbox = await new_inbox(db)
    stored = [await db.write(store, inbox, f"Report {number}") for number in range(3)]
    await index(db)

    def change(tx: Tx) -> None:
        removals.enqueue_removed(tx, stored[:1])
        tx.run("update messages set direction = 'blocked' where id = :id", id=stored[0])
        indexing.enqueue_all(tx, stored[:1])

    await db.write(change)
    await index(db)
    assert await db.read(find, inbox, "report") == ["Report 2", "Report 1"]
    await db.write(inboxes.remove, inbox.scope, inbox.id, START)
    await db.write(deletion.erase_all, stored)
    await index(db)
    assert await left_words(db) == 0
    await index_upkeep.tidy(db)
    assert await db.read(lambda tx: tx.all("select * from search_changes")) == []


async def left_words(db: Database) -> int:
    """Documents with any word, also those that are no longer shown."""

    def count(tx: Tx) -> int:
        if not tx.fulltext.is_apart:
            return len(tx.all("select doc from search_words"))
        assert tx.all("select * from search_removals") != []
        sql = "select rowid from search_words where search_words match :any"
        return len(tx.all(sql, any=f'"{indexing.realm_of(1)}" *'))

    return await db.read(count)


@pytest.mark.sqlite_alone
async def test_mail_from_before_the_index_is_found_behind_newer_mail(db: Database) -> None:
    inbox = await new_inbox(db)
    for number in range(100):
        await db.write(store, inbox, f"Earlier {number}", is_asked_for=False)
    assert (await db.read(indexing.progress)).earlier_percent == 0
    await db.write(store, inbox, "Newer")
    await index(db)
    wanted = ["Newer", *(f"Earlier {number}" for number in range(99, -1, -1))]
    assert await db.read(find, inbox, "newer OR earlier") == wanted[:100]
    assert await entries(db) == 101


async def test_new_tokens_replace_the_old_ones_while_searches_go_on(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = await new_inbox(db)
    for number in range(60):
        await db.write(store, inbox, f"Report {number}")
    await index(db)
    monkeypatch.setattr(tokens, "VERSION", tokens.VERSION + 1)
    assert await db.read(indexing.progress) == indexing.Progress(0, 0)
    while await indexing.step(db, "node", START):
        assert len(await db.read(find, inbox, "report")) == 60
    assert await entries(db) == 60
    rows = await db.read(lambda tx: tx.all("select distinct version from search_documents"))
    assert [row["version"] for row in rows] == [tokens.VERSION]


@pytest.mark.sqlite_alone
async def test_one_node_at_a_time_keeps_the_index(db: Database) -> None:
    inbox = await new_inbox(db)
    await index(db, "first")
    await db.write(store, inbox, "Report")
    assert not await indexing.step(db, "second", START + 1)
    await index(db, "second", START + indexing.LEASE + 1)
    assert await db.read(find, inbox, "report") == ["Report"]


async def test_pods_are_looked_through_together_and_apart(db: Database) -> None:
    inbox = await new_inbox(db)
    found = []
    for number in range(20):

        def add_pod(tx: Tx, number: int = number) -> Inbox:
            tx.run(
                "insert into pods (id, account_id, is_default, created_at) values (:id, :account_id, 0, 0)",
                id=f"pod_{number}",
                account_id=inbox.account_id,
            )
            name = f"sales-{number}"
            return inboxes.add(tx, inbox.account_id, name, None, None, DOMAIN, START, pod_id=f"pod_{number}")

        found.append(await db.write(add_pod))
        await db.write(store, found[-1], f"Report {number}")
    await index(db)
    assert await db.read(find, inbox, "report") == [f"Report {number}" for number in range(19, -1, -1)]

    def find_in_pod(tx: Tx) -> int:
        question = message_search.ask(tx, Scope(inbox.account_id, "pod_7"), parse("report"), DOMAIN)
        return len(message_search.find(tx, question, None, 100, Links("", 0, b""), lambda: False).found)

    assert await db.read(find_in_pod) == 1


def test_the_index_rests_longer_while_the_process_has_much_to_do() -> None:
    moments, uses = iter([0.0, 10.0, 20.0, 30.0]), iter([0.0, 1.0, 9.0, 10.0])
    pace = Pace(lambda: next(moments), lambda: next(uses))
    calm, crowded, calm_again = pace.rest(0.1), pace.rest(0.1), pace.rest(0.1)
    assert calm == calm_again == 0.1 * RESTS
    assert crowded == 0.1 * RESTS_IN_A_CROWD


@pytest.mark.sqlite_alone
async def test_changes_are_forgotten_when_they_are_in_the_index_for_good(db: Database) -> None:
    inbox = await new_inbox(db)
    for number in range(3):
        await db.write(store, inbox, f"Report {number}")
    await index_upkeep.tidy(db)
    assert (await db.read(indexing.progress)).waiting == 3
    await index(db)
    await index_upkeep.tidy(db)
    assert await db.read(lambda tx: tx.all("select * from search_changes")) == []
    await db.write(store, inbox, "Report 3")
    await index(db)
    assert len(await db.read(find, inbox, "report")) == 4


async def test_an_index_that_was_emptied_is_made_anew(db: Database) -> None:
    inbox = await new_inbox(db)
    for number in range(3):
        await db.write(store, inbox, f"Report {number}")
    await index(db)
    await db.write_index(index_upkeep.clear)
    assert await db.read(find, inbox, "report") == []
    await index(db)
    assert await db.read(find, inbox, "report") == ["Report 2", "Report 1", "Report 0"]
    assert await entries(db) == 3


@pytest.mark.sqlite_alone
async def test_an_index_that_lost_its_last_steps_or_all_of_it_is_made_whole(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    """As after a power cut: it is synced seldom. Then it is damaged, of an earlier version, and gone."""
    config, file = settings(tmp_path), tmp_path / sqlite_index.NAME
    db = await open_database(config, START)
    inbox = await new_inbox(db)
    await db.write(store, inbox, "Report 0")
    await index(db)
    await db.close()
    before = file.read_bytes()
    db = await open_database(config, START)
    await db.write(store, inbox, "Report 1")
    await index(db)
    await db.close()
    with closing(sqlite3.connect(tmp_path / "earlier.db")) as earlier:
        earlier.execute("create table search_documents (doc bigint primary key)")
    of_earlier_version = (tmp_path / "earlier.db").read_bytes()
    for content in (before, b"no database" * 1000, of_earlier_version, None):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        db = await open_database(config, START)
        await index(db)
        assert await db.read(find, inbox, "report") == ["Report 1", "Report 0"]
        assert await entries(db) == 2
        await db.close()


@pytest.mark.sqlite_alone
async def test_a_batch_is_stored_in_parts_and_is_whole_in_the_end(db: Database) -> None:
    inbox = await new_inbox(db)
    count = 2 * indexing.STORED_AT_ONCE + 1
    for number in range(count):
        await db.write(store, inbox, f"Report {number}")
    await index(db)
    assert len(await db.read(find, inbox, "report")) == await entries(db) == count


def test_parts_of_a_batch_have_every_entry_once() -> None:
    turns = [(f"msg_{number}", number) for number in range(5)]
    parts = list(Batch(turns, {message_id: None for message_id, _ in turns}, {}).parts(2))
    assert [part.changes for part in parts] == [turns[:2], turns[2:4], turns[4:]]
    assert [list(part.entries) for part in parts] == [["msg_0", "msg_1"], ["msg_2", "msg_3"], ["msg_4"]]
    earlier = Batch([], dict.fromkeys("abc"), {}, "a", 3)
    assert list(earlier.parts(2)) == [earlier]


@pytest.mark.sqlite_alone
async def test_a_node_that_was_killed_goes_on_at_once_and_another_after_the_lease(
    db: Database, tmp_path: Path
) -> None:
    inbox = await new_inbox(db)
    await db.write(store, inbox, "Report")
    killed, other = index_upkeep.holder_of(tmp_path / "one"), index_upkeep.holder_of(tmp_path / "other")
    assert await indexing.step(db, killed, START)
    assert not await db.read(indexing.has_work, other, START + 1)
    assert await db.read(indexing.has_work, index_upkeep.holder_of(tmp_path / "one"), START + 1)
    assert await db.read(indexing.has_work, other, START + indexing.LEASE)
