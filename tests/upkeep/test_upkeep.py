"""Upkeep: what has expired goes, what is needed stays."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.mailbox import inboxes
from postroom.queue import leader_leases
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Row, Tx, Values, WordIndex
from postroom.upkeep import inbox_removal, orphans
from postroom.upkeep.inbox_removal import STEP_BYTES
from postroom.upkeep.orphans import sweep_orphans
from postroom.upkeep.upkeep_loop import MOST_ROWS, one_round
from tests.api.test_stream import mail
from tests.conftest import Server
from tests.doubles import FakeClock
from tests.filled_inbox import fill


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))


@pytest.mark.sqlite_alone
async def test_a_blob_that_no_mail_names_is_removed_after_a_while_and_no_other(
    server: Server, tmp_path: Path
) -> None:
    await server.new_inbox("hello")
    await server.deliver(mail(1) + b"x" * 300_000, "hello")
    event = await server.next_event()
    orphan = server.resources.blobs.put(b"nobody names me")
    await sweep_orphans(server.resources)
    assert server.resources.blobs.get(orphan) == b"nobody names me"
    age(tmp_path / "blobs")
    await sweep_orphans(server.resources)
    assert len(list(server.resources.blobs.names(0))) == 1
    raw = await server.api.get(f"/v1/messages/{event['message']['id']}/raw")
    assert raw.content.endswith(b"x" * 1000 + b"\r\n")


@pytest.mark.sqlite_alone
async def test_events_are_kept_for_thirty_days(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(mail(1), "hello")
    event_id = (await server.next_event())["event_id"]
    server.clock.turn(29 * DAY)
    await one_round(server.resources)
    assert (await server.api.get("/v1/events")).json()["next"] == event_id
    server.clock.turn(2 * DAY)
    await one_round(server.resources)
    assert (await server.api.get("/v1/events")).json() == {"data": [], "next": None}


async def test_a_deleted_inbox_is_emptied_in_steps_and_forgotten(db: Database, clock: FakeClock) -> None:
    now, rows = clock.now(), 50
    account = await db.write(accounts.add, "owner", "developer", now)
    inbox_id = await db.write(fill, account.id, "large", "postroom.localhost", 3 * rows, now)
    await db.write(inboxes.remove, Scope(account.id), inbox_id, now)
    steps = 0
    while await db.write(inbox_removal.remove_some, now, rows) is not None:
        steps += 1
    assert steps >= 6
    left = await db.read(lambda tx: tx.one("select count(*) as n from messages"))
    assert left is not None
    assert left["n"] == 0


@pytest.mark.sqlite_alone
async def test_a_step_takes_as_many_statements_for_many_mails_as_for_one(server: Server) -> None:
    await server.new_inbox("hello")
    gone = await server.new_inbox("gone")
    for number in range(6):
        await server.deliver(mail(number), "gone")
    await server.deliver(mail(9), "hello")
    await server.api.delete(f"/v1/inboxes/{gone}")
    took: list[int] = []
    for rows in (1, 5):

        def step(tx: Tx, rows: int = rows) -> None:
            counting = CountingTx(tx)
            assert inbox_removal.remove_some(counting, server.clock.now(), rows) == []
            took.append(counting.statements)

        await server.resources.db.write(step)
    assert took[0] == took[1]
    left = await server.resources.db.read(lambda tx: tx.all("select inbox_id from messages"))
    assert gone not in {row["inbox_id"] for row in left}
    assert len(left) == 1


async def test_large_mails_go_in_smaller_steps(server: Server) -> None:
    gone = await server.new_inbox("gone")
    for number in range(3):
        await server.deliver(mail(number) + b"x" * 60_000, "gone")
    await server.resources.db.write(
        lambda tx: tx.run("update raw_mails set size_bytes = :size", size=STEP_BYTES // 2 + 1)
    )
    await server.api.delete(f"/v1/inboxes/{gone}")
    counts = []
    for _ in range(4):
        left = await server.resources.db.read(lambda tx: tx.all("select id from messages"))
        counts.append(len(left))
        await server.resources.db.write(inbox_removal.remove_some, server.clock.now(), MOST_ROWS)
    assert counts == [3, 2, 1, 0]


class CountingTx:
    """Counts statements."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def one(self, sql: str, **params: object) -> Row | None:
        self.statements += 1
        return self._tx.one(sql, **params)

    def all(self, sql: str, **params: object) -> list[Row]:
        self.statements += 1
        return self._tx.all(sql, **params)

    def ring(self, *bells: str) -> None:
        self._tx.ring(*bells)

    def tuples(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        self.statements += 1
        return self._tx.tuples(sql, **params)

    def run(self, sql: str, **params: object) -> int:
        self.statements += 1
        return self._tx.run(sql, **params)

    def many(self, sql: str, rows: Sequence[Values]) -> list[Row]:
        self.statements += 1
        return self._tx.many(sql, rows)

    @property
    def fulltext(self) -> WordIndex:
        return self._tx.fulltext


@pytest.mark.sqlite_alone
async def test_a_duty_has_one_holder_until_it_ends_or_is_left(server: Server) -> None:
    write, now = server.resources.db.write, server.clock.now()
    assert await write(leader_leases.take, "d", "one", now + 10, now)
    assert not await write(leader_leases.take, "d", "two", now + 10, now)
    assert await write(leader_leases.take, "d", "one", now + 20, now)
    assert await write(leader_leases.take, "d", "two", now + 40, now + 20)
    await write(leader_leases.leave, "d", "one")
    assert not await write(leader_leases.take, "d", "one", now + 40, now + 21)
    await write(leader_leases.leave, "d", "two")
    assert await write(leader_leases.take, "d", "one", now + 40, now + 21)


async def test_orphans_are_swept_page_by_page(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "SWEPT_AT_ONCE", 2)
    blobs = LocalBlobs(tmp_path / "apart")  # the server's own rounds sweep its folder
    for number in range(5):
        blobs.put(b"nobody names me %d" % number)
    age(tmp_path / "apart")
    sweep = orphans.Sweep(replace(server.resources, blobs=blobs))
    assert not await sweep.sweep_page()
    assert len(list(blobs.names(0))) == 3
    await sweep.sweep_pages()
    assert not list(blobs.names(0))
