"""Probes across tenants: what is foreign is answered as what does not exist, after the same statements."""

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from postroom import ids
from postroom.accounts import accounts, audit, domains, keys, pods
from postroom.accounts.actors import THE_SERVER
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope, default_pod
from postroom.errors import NotFound
from postroom.events import event_log, webhook_log
from postroom.events.announce import announce
from postroom.events.event_log import EventChoice
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import NewEvent
from postroom.mailbox import documents, holds, inboxes, messages, threads, usage
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import NewMessage
from postroom.storage.database import Database, Row, Tx, Values, WordIndex
from postroom.upkeep import deletion
from tests.doubles import FakeClock

PROBES = int(os.environ.get("POSTROOM_TEST_PROBES", "800"))
PROBES_IN_A_READ = 2_000
WRITES = 0.1  # the part of the probes that tries to change something
DOMAIN = "postroom.localhost"


class Watched:
    """A transaction that remembers its statements."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements: list[str] = []

    def one(self, sql: str, **params: object) -> Row | None:
        self.statements.append(sql)
        return self._tx.one(sql, **params)

    def all(self, sql: str, **params: object) -> list[Row]:
        self.statements.append(sql)
        return self._tx.all(sql, **params)

    def ring(self, *bells: str) -> None:
        self._tx.ring(*bells)

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        self.statements.append(sql)
        return self._tx.tuples(sql, **params)

    def run(self, sql: str, **params: object) -> int:
        self.statements.append(sql)
        return self._tx.run(sql, **params)

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        self.statements.append(sql)
        return self._tx.many(sql, rows)

    @property
    def fulltext(self) -> WordIndex:
        return self._tx.fulltext


@dataclass(frozen=True)
class Tenant:
    """One inbox with something of every kind; each text of it says whose it is."""

    mark: str
    scope: Scope
    ids: dict[str, str]  # by kind


def furnish(tx: Tx, account_id: str, pod_id: str, mark: str, now: int) -> Tenant:
    inbox = inboxes.add(tx, account_id, mark, None, f"of {mark}", DOMAIN, now, pod_id)
    thread = threads.new(inbox, f"subject of {mark}", is_read=False, now=now)
    threads.add_all(tx, [thread])
    document = to_document(inbox.id, thread.id, mark, now)
    new = NewMessage(document, messages.RECEIVED, f"from-{mark}@example.com", False, b"raw", None, now, 3)
    messages.add_all(tx, [new])
    inboxes.count(tx, inbox.id, inbound=1, new_threads=1, unread=1)
    announce(tx, NewEvent(account_id, pod_id, MESSAGE_RECEIVED, document, [], now), "http://x")
    domain = domains.add(tx, account_id, f"{mark}.example", b"key", now, pod_id)
    key = keys.add(tx, account_id, inbox.id, f"key of {mark}", keys.new_token(), now, pod_id=pod_id)
    rule = policy.add_rule(tx, inbox.scope, policy.INBOUND, policy.BLOCK, f"{mark}.example", now)
    stop = policy.PolicyRefusal(inbox.scope, f"eve@{mark}.example", None)
    policy.record_stop(tx, policy.BLOCKED, policy.INBOUND, stop, now)
    audit.record(tx, THE_SERVER, f"made.{mark}", inbox.id, inbox.scope, now)
    found = {"inbox": inbox.id, "thread": thread.id, "message": document.id, "pod": pod_id}
    return Tenant(mark, inbox.scope, found | {"domain": domain.id, "key": key.id, "rule": rule.id})


def to_document(inbox_id: str, thread_id: str, mark: str, now: int) -> Document:
    return Document(
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread_id,
        inbox_id=inbox_id,
        direction=messages.INBOUND,
        from_addr=f"from-{mark}@example.com",
        to_addr=f"{mark}@{DOMAIN}",
        header_to=f"{mark}@{DOMAIN}",
        delivery_role="to",
        cc=[],
        subject=f"subject of {mark}",
        body_text=f"body of {mark}",
        body_html="",
        created_at="2026-11-14T10:00:00.000Z",
        rfc_message_id=f"<{mark}@example.com>",
        reply_text=f"body of {mark}",
        auth=None,
        automated=False,
        new_participant=False,
        codes=[],
        links=[],
    )


def build(tx: Tx, now: int) -> list[Tenant]:
    """Two accounts with two pods each, in each pod two inboxes."""
    made = []
    for account_number in range(2):
        account = accounts.add(tx, f"account {account_number}", "business", now)
        other = pods.add(tx, account.id, f"client-{account_number}", None, now)
        for pod_number, pod_id in enumerate((default_pod(account.id), other.id)):
            for number in range(2):
                mark = f"tenant-{account_number}-{pod_number}-{number}"
                made.append(furnish(tx, account.id, pod_id, mark, now))
    return made


PREFIXES = {
    "inbox": ids.INBOX,
    "thread": ids.THREAD,
    "message": ids.MESSAGE,
    "pod": ids.POD,
    "domain": ids.DOMAIN,
    "key": ids.KEY,
    "rule": ids.RULE,
}
Probe = Callable[[Tx, Scope, str], object]
READS: list[tuple[str, Probe]] = [
    ("inbox", inboxes.get),
    ("inbox", lambda tx, scope, it: inboxes.are_within(tx, scope, [it])),
    ("inbox", lambda tx, scope, it: event_log.list_after(tx, EventChoice(scope, frozenset({it})), 0, 50)),
    ("thread", threads.get),
    ("message", messages.get),
    ("message", lambda tx, scope, it: event_log.position_of_message(tx, scope.account_id, "inb_x", it)),
    ("pod", pods.get),
    ("domain", domains.get),
    ("key", lambda tx, scope, it: keys.get_of(tx, scope, it)),
    ("message", lambda tx, scope, it: webhook_log.get(tx, scope.account_id, it)),
]
WRITING: list[tuple[str, Probe]] = [
    ("inbox", lambda tx, scope, it: inboxes.remove(tx, scope, it, 0)),
    ("thread", lambda tx, scope, it: threads.mark_read(tx, threads.get(tx, scope, it), True)),
    ("thread", lambda tx, scope, it: deletion.remove_some_of_thread(tx, scope, it, 0)),
    ("message", lambda tx, scope, it: deletion.remove_message(tx, scope, it, 0)),
    ("pod", pods.remove),
    ("domain", domains.remove),
    ("rule", policy.remove_rule),
]
LISTS: list[Callable[[Tx, Scope], object]] = [
    lambda tx, scope: inboxes.list_within(tx, scope, 100, 0),
    lambda tx, scope: pods.list_within(tx, scope, 100, 0),
    lambda tx, scope: domains.list_within(tx, scope, 100, 0),
    lambda tx, scope: keys.list_of(tx, scope, 100, 0),
    lambda tx, scope: event_log.list_after(tx, EventChoice(scope), 0, 100),
    lambda tx, scope: audit.list_within(tx, scope, None, None, None, None, 100, 0),
    lambda tx, scope: policy.list_stops(tx, scope, None, None, None, None, 100, 0),
    lambda tx, scope: holds.list_within(tx, scope, holds.HELD, 100, 0),
    lambda tx, scope: threads.list_within(tx, scope, None, None, 100, 0),
    lambda tx, scope: threads.list_within(tx, scope, False, "label", 100, 0),
    lambda tx, scope: usage.list_groups(tx, scope, "inbox", 0, 100_000),
]


def reaches_of(tenant: Tenant) -> list[Scope]:
    whole = tenant.scope
    return [whole, Scope(whole.account_id, whole.pod_id), Scope(whole.account_id)]


def is_foreign(scope: Scope, victim: Tenant, kind: str) -> bool:
    if kind == "pod":
        return not Scope(scope.account_id, scope.pod_id).includes(victim.scope)
    return not scope.includes(victim.scope)


def answer(tx: Tx, probe: Probe, scope: Scope, it: str) -> tuple[str, list[str]]:
    """What is told, without the id that was asked for, and the statements it took."""
    watched = Watched(tx)
    try:
        told = repr(probe(watched, scope, it))
    except NotFound as error:
        told = f"not found: {error.message}"
    return told.replace(it, "…"), watched.statements


def unknown(kind: str, chance: random.Random) -> str:
    return f"{PREFIXES[kind]}_{chance.getrandbits(128):032x}"


def probe_many(tx: Tx, tenants: list[Tenant], count: int, seed: int) -> int:
    """Gives how many probes aimed at what is foreign."""
    chance = random.Random(seed)
    aimed = 0
    for _ in range(count):
        scope = chance.choice(reaches_of(chance.choice(tenants)))
        if chance.random() < 0.1:
            probe_list(tx, chance.choice(LISTS), scope, tenants)
            continue
        kind, probe = chance.choice(READS)
        victim = chance.choice(tenants)
        if is_foreign(scope, victim, kind):
            aimed += 1
            foreign = answer(tx, probe, scope, victim.ids[kind])
            assert foreign == answer(tx, probe, scope, unknown(kind, chance)), (kind, scope, victim)
            assert victim.mark not in foreign[0]
    return aimed


def probe_list(tx: Tx, probe: Callable[[Tx, Scope], object], scope: Scope, tenants: list[Tenant]) -> None:
    shown = repr(probe(tx, scope))
    for tenant in tenants:
        if is_foreign(scope, tenant, "inbox"):
            leaks = [it for kind, it in tenant.ids.items() if kind != "pod" and it in shown]
            assert leaks == [], (scope, tenant)
            assert tenant.mark not in shown


class Undone(Exception):
    """Carries an answer out of a transaction that must leave nothing behind."""

    def __init__(self, told: tuple[str, list[str]]) -> None:
        self.told = told


async def try_to_change(db: Database, probe: Probe, scope: Scope, it: str) -> tuple[str, list[str]]:
    def work(tx: Tx) -> None:
        raise Undone(answer(tx, probe, scope, it))

    try:
        await db.write(work)
    except Undone as undone:
        return undone.told
    raise AssertionError


async def test_what_is_foreign_is_answered_as_what_does_not_exist(db: Database, clock: FakeClock) -> None:
    tenants = await db.write(build, clock.now())
    aimed, done = 0, 0
    while done < PROBES:
        step = min(PROBES_IN_A_READ, PROBES - done)
        aimed += await db.read(probe_many, tenants, step, done)
        done += step
    assert aimed > PROBES // 3
    chance = random.Random(1)
    for _ in range(int(min(PROBES, 100_000) * WRITES)):
        scope, (kind, probe) = chance.choice(reaches_of(chance.choice(tenants))), chance.choice(WRITING)
        victim = chance.choice(tenants)
        if is_foreign(scope, victim, kind):
            foreign = await try_to_change(db, probe, scope, victim.ids[kind])
            assert foreign == await try_to_change(db, probe, scope, unknown(kind, chance)), (kind, scope)
            assert foreign[0].startswith("not found")


@pytest.mark.sqlite_alone
async def test_every_probe_finds_what_is_within_reach(db: Database, clock: FakeClock) -> None:
    """Else the probes would prove nothing."""
    tenants = await db.write(build, clock.now())

    def work(tx: Tx) -> list[Any]:
        own = tenants[0]
        return [
            probe(
                tx,
                Scope(own.scope.account_id, own.scope.pod_id) if kind == "pod" else own.scope,
                own.ids[kind],
            )
            for kind, probe in [READS[0], READS[2], READS[3], READS[4], READS[6], READS[8]]
        ]

    found = await db.read(work)
    assert all(found)
    assert "body of tenant-0-0-0" in repr(found)
    assert documents.decode(found[3].document).subject == "subject of tenant-0-0-0"
