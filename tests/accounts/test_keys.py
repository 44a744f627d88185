"""Keys: found by their token alone, until they expire or are revoked."""

import pytest

from postroom.accounts import keys
from postroom.accounts.permissions import READING
from postroom.errors import ApiKeyLimitReached, NotFound
from postroom.limits import KEYS_OF_AN_INBOX
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.stored import make_inbox

pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def inbox(db: Database) -> Inbox:
    return await db.write(make_inbox)


async def test_a_token_leads_to_its_caller_and_is_not_stored(db: Database, inbox: Inbox) -> None:
    token = keys.new_token()
    key = await db.write(keys.add, inbox.account_id, inbox.id, "k", token, START)
    caller = await db.read(keys.find_caller, token, START)
    assert caller is not None
    assert (caller.key_id, caller.account_id, caller.inbox_id) == (key.id, inbox.account_id, inbox.id)
    assert await db.read(keys.find_caller, token + "x", START) is None
    rows = await db.read(lambda tx: tx.all("select * from keys"))
    stored = [row[name] for row in rows for name in ("token_hash", "token_prefix", "last4", "name")]
    assert token not in " ".join(stored)
    assert (key.token_prefix, key.last4) == (token[:7], token[-4:])


async def test_a_key_ends_at_its_time(db: Database, inbox: Inbox) -> None:
    token = keys.new_token()
    key = await db.write(
        lambda tx: keys.add(tx, inbox.account_id, None, "k", token, START, expires_at=START + 10)
    )
    assert await db.read(keys.find_caller, token, START + 9) is not None
    assert await db.read(keys.find_caller, token, START + 10) is None
    assert await db.read(keys.find_allowed, [key.id], READING, START + 9) == {key.id}
    assert await db.read(keys.find_allowed, [key.id], READING, START + 10) == set()


async def test_a_revoked_key_is_unknown_at_once(db: Database, inbox: Inbox) -> None:
    token = keys.new_token()
    key = await db.write(keys.add, inbox.account_id, None, "k", token, START)
    await db.write(keys.remove, key.id)
    assert await db.read(keys.find_caller, token, START) is None
    assert await db.read(keys.find_allowed, [key.id], READING, START) == set()
    for unknown in (key.id, "nonsense"):
        with pytest.raises(NotFound):
            await db.write(keys.remove, unknown)


async def test_an_inbox_has_twenty_keys_and_only_its_own(db: Database, inbox: Inbox) -> None:
    def fill(tx: Tx) -> list[str]:
        return [
            keys.add(tx, inbox.account_id, inbox.id, f"{number}", keys.new_token(), START + number).id
            for number in range(KEYS_OF_AN_INBOX - 1)
        ]

    made = await db.write(fill)
    await db.read(keys.require_room, inbox.scope)
    other = await db.write(keys.add, inbox.account_id, None, "account", keys.new_token(), START)
    page, total = await db.read(keys.list_of, inbox.scope, 2, 1)
    assert ([key.id for key in page], total) == (made[1:3], 19)
    with pytest.raises(NotFound):
        await db.read(keys.get_of, inbox.scope, other.id)
    await db.write(keys.add, inbox.account_id, inbox.id, "20", keys.new_token(), START)
    with pytest.raises(ApiKeyLimitReached):
        await db.read(keys.require_room, inbox.scope)
    await db.write(keys.remove, (await db.read(keys.get_of, inbox.scope, made[0])).id)
    await db.read(keys.require_room, inbox.scope)
    await db.write(keys.remove_all_of_inbox, inbox.id)
    assert [key.id for key in await db.read(keys.list_of_account, inbox.account_id)] == [other.id]


async def test_the_last_use_is_of_each_key(db: Database, inbox: Inbox) -> None:
    made = [
        await db.write(keys.add, inbox.account_id, None, name, keys.new_token(), START + at)
        for at, name in enumerate(("used", "unused"))
    ]
    await db.write(keys.mark_used, {made[0].id: START + 5})
    found = await db.read(keys.list_of_account, inbox.account_id)
    assert [(key.name, key.last_used_at) for key in found] == [("used", START + 5), ("unused", None)]
