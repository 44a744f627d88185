"""What expires, and when: rows past their lifetime go, younger ones stay."""

import pytest

from postroom.clock import DAY
from postroom.storage.database import Database, Tx
from postroom.upkeep import expiry
from tests.doubles import START

# What a row needs beside its key and its moment, and how long it is kept.
ROWS: dict[str, tuple[dict[str, object], str, str, int]] = {
    "events": (
        {
            "account_id": "acc",
            "pod_id": "pod",
            "inbox_id": "inb",
            "message_id": "",
            "kind": "k",
            "text_files": "",
            "payload": b"{}",
        },
        "id",
        "created_at",
        30 * DAY,
    ),
    "handovers": ({"inbox_id": "inb"}, "content_hash", "received_at", 5 * DAY),
    "posts": ({"connection_id": "con", "content_hash": ""}, "post_id", "received_at", 5 * DAY),
    "idempotency_keys": (
        {"account_id": "acc", "request_hash": "", "answer": b""},
        "idempotency_key",
        "created_at",
        DAY,
    ),
    "sessions": (
        {
            "account_id": "acc",
            "key_id": "key",
            "name": "n",
            "is_operator": 0,
            "address": "",
            "user_agent": "",
            "created_at": 0,
            "last_used_at": 0,
            "by_key": 0,
        },
        "id",
        "expires_at",
        0,
    ),
    "login_links": (
        {"account_id": "acc", "key_id": "key", "is_operator": 0, "created_at": 0},
        "token_hash",
        "expires_at",
        0,
    ),
    "mail_links": (
        {"account_id": "acc", "user_id": "usr", "purpose": "invitation", "created_at": 0},
        "token_hash",
        "expires_at",
        0,
    ),
    "letters": (
        {"account_id": "acc", "recipient": "a@b", "subject": "s", "content": "c", "state": "captured"},
        "id",
        "created_at",
        3 * DAY,
    ),
    "challenges": ({"purpose": "passkey", "value": "v"}, "token_hash", "expires_at", 0),
    "oauth_codes": (
        {
            "client_id": "c",
            "redirect_uri": "r",
            "challenge": "c",
            "resource": "r",
            "account_id": "acc",
            "maker_id": "key",
            "permissions": "read",
        },
        "code_hash",
        "expires_at",
        DAY,
    ),
    "oauth_used_tokens": ({"key_id": "key"}, "token_hash", "expires_at", 0),
    "device_codes": ({"state": "waiting", "address": "", "name": ""}, "request_hash", "expires_at", 0),
    "notifications": (
        {
            "account_id": "acc",
            "target_id": "t",
            "kind": "held",
            "subject": "s",
            "link": "l",
            "count": 1,
            "state": "told",
        },
        "id",
        "created_at",
        30 * DAY,
    ),
    "tls_sessions": (
        {
            "day": 0,
            "policy_type": "sts",
            "policy": "{}",
            "result": "success",
            "host": "",
            "ip": "",
            "own_ip": "",
            "reason": "",
            "count": 1,
        },
        "domain",
        "noted_at",
        3 * DAY,
    ),
    "dmarc_results": ({"day": 0, "domain": "a.test", "result": "[]"}, "id", "noted_at", 3 * DAY),
    "dmarc_reports": ({"id": "dmr_1", "day": 0, "content": b""}, "domain", "created_at", 10 * DAY),
    "greylist": ({"key": "k", "first_at": 0}, "bucket", "seen_at", 36 * DAY),
    "tls_reports": ({"id": "tlr_1", "day": 0, "content": b""}, "domain", "created_at", 10 * DAY),
    "provider_hours": (
        {
            "account_id": "acc",
            "pod_id": "pod",
            "accepted": 1,
            "deferred": 0,
            "bounced": 0,
            "complained": 0,
            "encrypted": 0,
            "milliseconds": 0,
        },
        "provider",
        "hour_at",
        32 * DAY,
    ),
    "provider_paces": (
        {"interval_ms": 1000, "next_at": 0, "backlog_at": 0},
        "provider",
        "slowed_at",
        DAY,
    ),
    "warm_ups": (
        {"domain": "d", "account_id": "acc", "step": 0, "taken": 1, "told_at": 0},
        "provider",
        "day_at",
        90 * DAY,
    ),
    "check_answers": ({}, "sender", "answered_at", DAY),
    "domain_reports": (
        {
            "owner": "acc",
            "domain": "d",
            "kind": "dmarc",
            "position": 0,
            "reporter": "r",
            "day": 0,
            "source": "s",
            "spf": "pass",
            "dkim": "pass",
            "disposition": "none",
            "count": 1,
        },
        "report_hash",
        "received_at",
        400 * DAY,
    ),
    "dkim_keys": (
        {"owner": "acc", "domain": "d", "algorithm": "rsa", "private_key": b"", "created_at": 0},
        "selector",
        "retired_at",
        30 * DAY,
    ),
    "writers": ({"name": "Ann", "person": "usr"}, "thread_id", "until_at", 0),
    "webhooks": (
        {
            "account_id": "acc",
            "url": "https://example.com/hook",
            "event_types": "message.received",
            "secret": "s",
            "enabled": 1,
            "created_at": 0,
        },
        "owner",
        "expires_at",
        0,
    ),
    "file_links": (
        {
            "kind": "upload",
            "account_id": "acc",
            "inbox_id": "inb",
            "key_id": "key",
            "filename": "f",
            "content_type": "t",
            "size_bytes": 1,
            "created_at": 0,
        },
        "id",
        "expires_at",
        0,
    ),
    "shown_links": ({}, "token_hash", "shown_at", 365 * DAY),
    "feedback": (
        {"account_id": "acc", "key_id": "key", "key_name": "n", "type": "bug", "message": "m"},
        "id",
        "created_at",
        365 * DAY,
    ),
    "rule_matches": ({"rule_id": "rul", "message_id": "m"}, "message_id", "matched_at", 30 * DAY),
    "rule_replies": ({"inbox_id": "inb"}, "address", "day", 2 * DAY),
    "jobs": (
        {
            "account_id": "acc",
            "kind": "contact.erase",
            "subject": "x",
            "actor": "{}",
            "person": "key",
            "state": "done",
            "position": "{}",
            "done": 1,
            "total": 1,
            "result": "{}",
            "created_at": 1,
        },
        "id",
        "finished_at",
        365 * DAY,
    ),
    "policy_audit": (
        {
            "account_id": "acc",
            "pod_id": "pod",
            "inbox_id": "inb",
            "action": "a",
            "direction": "inbound",
            "address": "x",
        },
        "id",
        "created_at",
        365 * DAY,
    ),
    "delayed_actions": (
        {
            "account_id": "acc",
            "session_id": "ses",
            "operation": "o",
            "arguments": "[]",
            "targets": "",
            "said": "s",
            "address": "",
        },
        "id",
        "due_at",
        30 * DAY,
    ),
    "tool_calls": (
        {
            "minute": 1,
            "tool": "read_thread",
            "inbox_id": "",
            "outcome": "done",
            "account_id": "acc",
            "count": 1,
        },
        "key_id",
        "called_at",
        30 * DAY,
    ),
}
# Columns that are unique beside the key.
NUMBERED = {
    "events": "position",
    "file_links": "token_hash",
    "sessions": "token_hash",
    "device_codes": "user_code",
}


def add(tx: Tx, table: str, key: str, number: int, at: int) -> None:
    values, key_column, moment, _ = ROWS[table]
    row = {**values, key_column: key, moment: at}
    if table in NUMBERED:
        row[NUMBERED[table]] = number if table == "events" else key
    columns = ", ".join(f":{name}" for name in row)
    tx.run(f"insert into {table} ({', '.join(row)}) values ({columns})", **row)


def add_young_and_old(tx: Tx) -> None:
    for table, (*_, lifetime) in ROWS.items():
        for number, (key, at) in enumerate((("young", START - lifetime), ("old", START - lifetime - 1))):
            add(tx, table, key, number, at)


def keys(tx: Tx, table: str) -> list[str]:
    key = ROWS[table][1]
    return sorted(row[key] for row in tx.all(f"select {key} from {table}"))


def keys_of_all(tx: Tx) -> dict[str, list[str]]:
    return {table: keys(tx, table) for table in ROWS}


async def test_a_row_goes_when_its_lifetime_is_over_and_not_before(db: Database) -> None:
    await db.write(add_young_and_old)
    assert await db.write(expiry.expire_rows, START, 100) == len(ROWS)
    assert await db.read(keys_of_all) == {table: ["young"] for table in ROWS}
    assert await db.write(expiry.expire_rows, START, 100) == 0
    assert await db.write(expiry.expire_rows, START + 1, 100) == len(ROWS)
    assert await db.read(keys_of_all) == {table: [] for table in ROWS}


async def test_the_daily_limit_of_new_inboxes_is_counted_for_two_days(db: Database) -> None:
    def fill(tx: Tx) -> None:
        tx.run("insert into accounts (id, name, plan, created_at) values ('acc', 'n', 'free', 1)")
        for inbox_id, at in (("young", START - 2 * DAY), ("old", START - 2 * DAY - 1)):
            tx.run(
                "insert into inbox_creations (inbox_id, account_id, created_at) values (:id, 'acc', :at)",
                id=inbox_id,
                at=at,
            )

    await db.write(fill)
    assert await db.write(expiry.expire_rows, START, 100) == 1
    left = await db.read(lambda tx: tx.all("select inbox_id from inbox_creations"))
    assert [row["inbox_id"] for row in left] == ["young"]


def test_every_table_that_expires_is_tried() -> None:
    assert {table for table, *_ in expiry.EXPIRING} == {*ROWS, "inbox_creations"}


@pytest.mark.sqlite_alone
async def test_a_step_removes_the_oldest_rows_first_and_no_more_than_it_may(db: Database) -> None:
    for number in range(5):
        await db.write(add, "handovers", f"hash {number}", number, number)
    assert await db.write(expiry.expire_rows, START, 2) == 2
    assert await db.read(keys, "handovers") == ["hash 2", "hash 3", "hash 4"]


def add_delivery(tx: Tx, delivery_id: str, kind: str, finished_at: int | None) -> None:
    tx.run(
        "insert into deliveries (id, account_id, inbox_id, kind, message_id, target, lane, position, is_cold,"
        " state, attempts, waits_used, due_at, last_reply, created_at, finished_at) values (:id, 'acc',"
        " 'inb', :kind, 'msg', 't', 'l', 0, 0, 'delivered', 1, 0, 0, '', 0, :finished_at)",
        id=delivery_id,
        kind=kind,
        finished_at=finished_at,
    )
    tx.run(
        "insert into attempts (delivery_id, number, started_at) values (:id, 1, 0), (:id, 2, 0)",
        id=delivery_id,
    )


async def test_webhooks_go_with_their_attempts_and_mail_keeps_its_deliveries(db: Database) -> None:
    limit = START - expiry.EVENT_LIFETIME
    for delivery_id, kind, finished_at in (
        ("old webhook", "webhook", limit - 1),
        ("young webhook", "webhook", limit),
        ("waiting webhook", "webhook", None),
        ("old mail", "mail", 0),
    ):
        await db.write(add_delivery, delivery_id, kind, finished_at)
    assert await db.write(expiry.expire_deliveries, START, 100) == 1
    assert await db.write(expiry.expire_deliveries, START, 100) == 0
    left = await db.read(lambda tx: tx.all("select id from deliveries"))
    tried = await db.read(lambda tx: tx.all("select delivery_id as id from attempts"))
    expected = {"young webhook", "waiting webhook", "old mail"}
    assert {row["id"] for row in left} == expected == {row["id"] for row in tried}
