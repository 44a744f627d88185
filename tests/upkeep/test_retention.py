"""Mail past its retention goes: of which inboxes, which messages, and in what order."""

import pytest

from postroom.accounts import accounts
from postroom.clock import DAY
from postroom.mailbox import inboxes
from postroom.storage.database import Database, Tx
from postroom.upkeep import mail_retention
from postroom.upkeep.mail_retention import RetentionRule
from tests.conftest import Server
from tests.doubles import START
from tests.filled_inbox import fill

DOMAIN = "postroom.localhost"


def add_inbox(tx: Tx, account_id: str, name: str, days: int | None) -> str:
    inbox = inboxes.add(tx, account_id, name, None, None, DOMAIN, START)
    tx.run("update inboxes set retention_days = :days where id = :id", days=days, id=inbox.id)
    return inbox.id


def add_account(tx: Tx, name: str, days: int | None) -> str:
    account = accounts.add(tx, name, "developer", START)
    tx.run("update accounts set retention_days = :days where id = :id", days=days, id=account.id)
    return account.id


async def test_an_inbox_overrides_its_account_and_who_says_nothing_keeps_all(db: Database) -> None:
    short, forever = await db.write(add_account, "short", 7), await db.write(add_account, "forever", None)
    expected = [
        RetentionRule(await db.write(add_inbox, short, "own-a", None), 7),
        RetentionRule(await db.write(add_inbox, short, "own-b", 30), 30),
        RetentionRule(await db.write(add_inbox, forever, "own-c", 2), 2),
    ]
    await db.write(add_inbox, forever, "own-d", None)
    expected.sort(key=lambda rule: rule.inbox_id)
    assert await db.read(mail_retention.list_rules, "", 10) == expected
    assert await db.read(mail_retention.list_rules, "", 2) == expected[:2]
    assert await db.read(mail_retention.list_rules, expected[1].inbox_id, 2) == expected[2:]


def set_fates(tx: Tx, inbox_id: str) -> None:
    """Of six messages the second waits to be sent, and the third was blocked."""
    rows = tx.all("select id, thread_id from messages where inbox_id = :id order by created_at", id=inbox_id)
    tx.run("update messages set status = 'pending' where id = :id", id=rows[1]["id"])
    tx.run("update messages set direction = 'blocked' where id = :id", id=rows[2]["id"])
    tx.run(
        "insert into raw_mails (message_id, size_bytes, content)"
        " select id, 10, :content from messages where inbox_id = :inbox_id",
        content=b"0123456789",
        inbox_id=inbox_id,
    )
    tx.run(
        "update inboxes set inbound_count = 5, blocked_count = 1, stored_bytes = 60 where id = :id",
        id=inbox_id,
    )


async def test_what_is_too_old_goes_but_for_what_waits_to_be_sent(db: Database) -> None:
    account_id = await db.write(add_account, "account", None)
    inbox_id = await db.write(fill, account_id, "inbox", DOMAIN, 6, START)
    await db.write(set_fates, inbox_id)
    rule, now = RetentionRule(inbox_id, 3), START - 6 + 5 + 3 * DAY  # the first four are older than that
    assert await db.write(mail_retention.expire, now, 2, rule) == []
    while await db.write(mail_retention.expire, now, 2, rule) is not None:
        pass
    left = await db.read(lambda tx: tx.all("select created_at - :start as n from messages", start=START - 6))
    assert sorted(row["n"] for row in left) == [2, 5, 6]
    (row,) = await db.read(
        lambda tx: tx.all(
            "select inbound_count, blocked_count, stored_bytes, thread_count from inboxes where id = :id",
            id=inbox_id,
        )
    )
    assert (row["inbound_count"], row["blocked_count"], row["stored_bytes"]) == (3, 0, 30)


@pytest.mark.sqlite_alone
async def test_a_mail_goes_after_its_days_and_not_before(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(b"From: a@example.com\r\nSubject: s\r\n\r\nhi", "hello")
    await server.next_event()
    rule, came_at = RetentionRule(inbox_id, 1), server.clock.now()
    assert await server.resources.db.write(mail_retention.expire, came_at + DAY, 100, rule) is None
    assert await server.resources.db.write(mail_retention.expire, came_at + DAY + 1, 100, rule) == []
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["total"] == 0
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}/threads")).json()["total"] == 0
