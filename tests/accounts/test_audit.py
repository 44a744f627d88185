"""The audit log: bounded lines, each with its place and the address it was asked from."""

import msgspec
import pytest

from postroom.accounts import audit
from postroom.accounts.actors import Actor
from postroom.accounts.audit_entries import Entry
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import MINUTE
from postroom.storage.database import Database, Tx
from tests.doubles import START

ACCOUNT = "acc_1"
CALLER = Caller("key_1", ACCOUNT, "first", "free", Scope(ACCOUNT), key_name="agent", address="192.0.2.7")
INBOX = Scope(ACCOUNT, "pod_1", "inb_1")


def read(tx: Tx, scope: Scope) -> list[Entry]:
    return audit.list_within(tx, scope, None, None, None, None, 100, 0)[0]


async def test_a_line_has_its_actor_its_place_and_the_address(db: Database) -> None:
    await db.write(audit.record_by, CALLER, "key.created", "key_2", START)
    await db.write(lambda tx: audit.record_by(tx, CALLER, "x.changed", "x", START + 1, within=INBOX))
    within, whole = await db.read(read, Scope(ACCOUNT))
    assert (within.pod_id, within.inbox_id, whole.pod_id) == ("pod_1", "inb_1", None)
    assert {(line.actor, line.address) for line in (within, whole)} == {
        (Actor("key", "key_1", "agent"), "192.0.2.7")
    }
    for scope, found in (
        (INBOX, 1),
        (Scope(ACCOUNT, "pod_1"), 1),
        (Scope(ACCOUNT, "pod_2"), 0),
        (Scope(ACCOUNT, "pod_1", "inb_2"), 0),
        (Scope("acc_2"), 0),
    ):
        assert len(await db.read(read, scope)) == found, scope


async def test_what_is_long_is_cut_or_named_by_its_length(db: Database) -> None:
    fits, long = "x" * (audit.VALUE_CHARACTERS - 2), "x" * (audit.VALUE_CHARACTERS - 1)
    await db.write(
        lambda tx: audit.record_by(tx, CALLER, "x.changed", "t" * 500, START, before=fits, after=long)
    )
    [line] = await db.read(read, Scope(ACCOUNT))
    assert line.target == "t" * audit.TARGET_CHARACTERS
    assert line.before is not None
    assert line.after is not None
    assert msgspec.json.decode(line.before) == fits
    assert msgspec.json.decode(line.after) == {"omitted": f"{audit.VALUE_CHARACTERS + 1} characters"}


@pytest.mark.sqlite_alone
async def test_refusals_are_counted_by_actor_target_account_and_minute(db: Database) -> None:
    one, two = Actor("key", "key_1", "a"), Actor("key", "key_2", "b")
    for actor, target, account_id, now in (
        (one, "GET /x", ACCOUNT, START),
        (one, "GET /x", ACCOUNT, START + 1),
        (two, "GET /x", ACCOUNT, START),
        (one, "GET /y", ACCOUNT, START),
        (one, "GET /x", "acc_2", START),
        (one, "GET /x", ACCOUNT, START + MINUTE),
        (one, "t" * 500, ACCOUNT, START),
        (one, "t" * 500, ACCOUNT, START),
    ):
        await db.write(audit.record_refusal, actor, target, Scope(account_id), now)
    found = [
        (line.actor.id, line.target, line.count)
        for line in sorted(await db.read(read, Scope(ACCOUNT)), key=lambda line: line.id)
    ]
    assert sorted(found) == [
        ("key_1", "GET /x", 1),
        ("key_1", "GET /x", 2),
        ("key_1", "GET /y", 1),
        ("key_1", "t" * audit.TARGET_CHARACTERS, 2),
        ("key_2", "GET /x", 1),
    ]
