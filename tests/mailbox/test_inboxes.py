"""Inboxes: one address once, within the scope of their owner, with what came and went counted."""

import pytest

from postroom.accounts import accounts, keys
from postroom.accounts.scope import Scope
from postroom.errors import AddressTaken, InvalidMailboxName, NotFound
from postroom.mailbox import correspondents, inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database
from tests.doubles import START
from tests.samples import samples
from tests.stored import SERVICE, make_inbox

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


@samples("name", ["abc", "a.b", "a-b", "1" * 30])
def test_a_mailbox_name_may_be(name: str) -> None:
    inboxes.require_mailbox_name(name)


@samples("name", ["ab", "1" * 31, "a..b", ".ab", "ab-", "Abc", "a_b", "abc\n", ""])
def test_a_mailbox_name_may_not_be(name: str) -> None:
    with pytest.raises(InvalidMailboxName):
        inboxes.require_mailbox_name(name)


async def test_an_address_is_given_once_and_reserved_names_never(db: Database, inbox: Inbox) -> None:
    for name in ("hello", "postmaster", "abuse"):
        with pytest.raises(AddressTaken):
            await db.write(make_inbox, name)
    assert await db.read(inboxes.find_by_address, f"hello@{SERVICE}") == inbox
    assert await db.read(inboxes.find_by_address, f"other@{SERVICE}") is None


async def test_only_its_owner_reaches_an_inbox(db: Database, inbox: Inbox) -> None:
    mine = inbox.account_id
    assert await db.read(inboxes.get, Scope(mine), inbox.id) == inbox
    for scope in (Scope("acc_other"), Scope(mine, inbox_id="inb_other"), Scope(mine, pod_id="pod_other")):
        with pytest.raises(NotFound):
            await db.read(inboxes.get, scope, inbox.id)
        assert not await db.read(inboxes.are_within, scope, [inbox.id])
    assert await db.read(inboxes.are_within, Scope(mine), [inbox.id])
    assert not await db.read(inboxes.are_within, Scope(mine), [inbox.id, "inb_unknown"])


async def test_the_list_is_newest_first_and_of_a_scoped_key_its_inbox_alone(
    db: Database, inbox: Inbox
) -> None:
    second = await db.write(make_inbox, "second", inbox.account_id, START + 1)
    await db.write(make_inbox, "stranger")
    assert await db.read(inboxes.list_within, Scope(inbox.account_id), 10, 0) == ([second, inbox], 2)
    assert await db.read(inboxes.list_within, Scope(inbox.account_id), 1, 1) == ([inbox], 2)
    scoped = Scope(inbox.account_id, inbox_id=inbox.id)
    assert await db.read(inboxes.list_within, scoped, 10, 0) == ([inbox], 1)


async def test_counting_adds_up_and_fails_for_an_inbox_that_is_gone(db: Database, inbox: Inbox) -> None:
    await db.write(lambda tx: inboxes.count(tx, inbox.id, inbound=2, new_threads=2, unread=1))
    await db.write(lambda tx: inboxes.count(tx, inbox.id, outbound=1, new_threads=1))
    row = await db.read(lambda tx: tx.one("select * from inboxes where id = :id", id=inbox.id))
    assert row is not None
    counted = [row[f"{name}_count"] for name in ("inbound", "outbound", "thread", "unread")]
    assert counted == [2, 1, 3, 1]
    with pytest.raises(NotFound):
        await db.write(inboxes.count, "inb_gone")


async def test_deleting_ends_the_keys_and_frees_the_address_and_the_count(db: Database, inbox: Inbox) -> None:
    token, scope = keys.new_token(), Scope(inbox.account_id)
    await db.write(keys.add, inbox.account_id, inbox.id, "k", token, START)
    await db.write(inboxes.remove, scope, inbox.id, START)
    assert await db.read(keys.find_caller, token, START) is None
    assert await db.read(inboxes.find, inbox.id) is None
    assert [account.inbox_count for account in await db.read(accounts.list_all)] == [0]
    with pytest.raises(NotFound):
        await db.write(inboxes.remove, scope, inbox.id, START)
    assert (await db.write(make_inbox, "hello", inbox.account_id)).id != inbox.id


async def test_whoever_wrote_to_an_inbox_is_known_to_it_alone(db: Database, inbox: Inbox) -> None:
    names = ("bob", "bob", "eve")
    pairs = [(inbox.id, f"{name}@x.example", True) for name in names]
    await db.write(correspondents.add, pairs, START)
    asked = [(inbox.id, "bob@x.example"), ("inb_other", "bob@x.example"), (inbox.id, "dan@x.example")]
    assert await db.read(correspondents.find, asked) == {(inbox.id, "bob@x.example")}
