"""What the other side has answered is written down, whatever the database does: nothing goes twice."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from postroom.errors import Unavailable
from postroom.outward import deliver
from postroom.queue import deliveries
from postroom.queue.leases import LEASE
from postroom.queue.recording import JOURNAL_NAME
from postroom.storage.database import Tx
from postroom.storage.journal import Journal
from tests import memory_folder
from tests.conftest import Server
from tests.couriers.http_peer import HttpPeer
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import PATIENCE_SECONDS, relay_to, running, send
from tests.outward.test_reviewers import REVIEWER, set_reviewers
from tests.postgres_databases import MIGRATED, create, make_migrated_database, url_of
from tests.postgres_engine import OF_TESTS, Engine, running_engine
from tests.raw_mails import raw_mail
from tests.waiting import until

OF_ENGINE = OF_TESTS | {"synchronous_commit": "on"}  # it is stopped and started again


@dataclass
class World:
    """Who is outside: each takes what it is given, and answers once it may."""

    mail: SmtpPeer
    web: HttpPeer
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.mail.hold, self.web.answer = self.may_answer, self.answer

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        await self.may_answer.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()

    async def until_all_are_under_way(self) -> None:
        await until(
            lambda: self.mail.held == 2 and len(self.web.requests) == 1,
            "a mail, a notice and a webhook wait for their answers",
        )


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with SmtpPeer() as mail, HttpPeer() as web:
        yield World(mail, web)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine(memory_folder.choose(), settings=OF_ENGINE) as engine:
        make_migrated_database(engine.url)
        yield engine


@contextlib.contextmanager
def database_of(engine: Engine) -> Iterator[str]:
    """A new one. Whatever a test does to the engine: it runs afterwards."""
    with psycopg.connect(engine.url, autocommit=True) as connection:
        name = create(connection, MIGRATED)
    try:
        yield url_of(engine.url, name)
    finally:
        if engine.process is None:
            engine.start()


async def put_all_under_way(server: Server, world: World) -> None:
    """A mail, a notice to a reviewer and a webhook, each with somebody who has it and says nothing yet."""
    alice, bob = await server.new_inbox("alice"), await server.new_inbox("bob")
    await server.resources.db.write(set_reviewers, bob, REVIEWER)
    hook = {"url": world.web.url(), "eventTypes": ["message.received"]}
    assert (await server.api.put("/v1/webhook", json=hook)).status_code == 200
    await send(server, alice, "carol@there.example")
    await send(server, bob, "dora@there.example")
    await server.deliver(raw_mail("Hello"), "alice")
    await world.until_all_are_under_way()


def states(tx: Tx) -> dict[str, tuple[str, int]]:
    """Of each kind of delivery the state, and how often it was tried."""
    rows = tx.all("select kind, state, attempts from deliveries where state <> 'held'")
    return {row["kind"]: (row["state"], row["attempts"]) for row in rows}


async def until_all_are_done(server: Server) -> None:
    once = (deliveries.DONE, 1)
    expected = {deliveries.MAIL: once, deliveries.NOTICE: once, deliveries.WEBHOOK: once}
    found: dict[str, tuple[str, int]] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while found != expected:
            await asyncio.sleep(0.05)
            with contextlib.suppress(Unavailable):  # it is only just back
                found = await server.resources.db.read(states)
            assert all(attempts == 1 for _, attempts in found.values()), found


def turn_past_every_lease(server: Server) -> None:
    server.clock.turn(2 * LEASE)
    server.resources.db.ring(*deliveries.BELLS.values())


def require_one_of_each(world: World) -> None:
    assert (len(world.mail.mails), len(world.web.requests)) == (2, 1)


async def until_kept(folder: Path, count: int) -> None:
    """The database has refused them."""
    await until(lambda: len(Journal(folder / JOURNAL_NAME).read()) == count, f"{count} outcomes are kept")


async def until_journal_is_gone(folder: Path) -> None:
    """It goes behind the commit."""
    await until(lambda: not (folder / JOURNAL_NAME).exists(), "the journal is gone")


async def test_an_outcome_waits_until_a_locked_row_is_free(
    postgres_url: str, tmp_path: Path, clock: FakeClock, world: World
) -> None:
    """The account, into whose log the event of a sent mail goes, and the attempts of the others."""
    async with running(tmp_path, postgres_url, clock, relay_to(world.mail)) as server:
        await put_all_under_way(server, world)
        with psycopg.connect(postgres_url) as another:
            another.execute("select 1 from accounts for update")
            another.execute("select 1 from attempts for update")
            world.may_answer.set()
            await until_kept(tmp_path, 3)
            turn_past_every_lease(server)
            another.rollback()
        await until_all_are_done(server)
        turn_past_every_lease(server)
        await until_journal_is_gone(tmp_path)
    require_one_of_each(world)


async def test_an_outcome_outlives_a_database_that_stops_and_comes_back(
    engine: Engine, tmp_path: Path, clock: FakeClock, world: World
) -> None:
    with database_of(engine) as url:
        async with running(tmp_path, url, clock, relay_to(world.mail)) as server:
            await put_all_under_way(server, world)
            await asyncio.to_thread(engine.stop)
            world.may_answer.set()
            await until_kept(tmp_path, 3)
            turn_past_every_lease(server)
            await asyncio.to_thread(engine.start)
            await until_all_are_done(server)
            turn_past_every_lease(server)
        require_one_of_each(world)


async def test_an_outcome_outlives_a_stop_while_the_database_is_away(
    engine: Engine, tmp_path: Path, clock: FakeClock, world: World
) -> None:
    with database_of(engine) as url:
        async with running(tmp_path, url, clock, relay_to(world.mail)) as server:
            await put_all_under_way(server, world)
            await asyncio.to_thread(engine.stop)
            world.may_answer.set()
            await until_kept(tmp_path, 3)
        clock.turn(2 * LEASE)
        await asyncio.to_thread(engine.start)
        async with running(tmp_path, url, clock, relay_to(world.mail), token=server.token) as server:
            await until_all_are_done(server)
            turn_past_every_lease(server)
            await until_journal_is_gone(tmp_path)
        require_one_of_each(world)


async def test_a_stop_waits_for_an_answer_that_is_about_to_come(
    database_url: str, tmp_path: Path, clock: FakeClock, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "FINISH_SECONDS", 40 * deliver.FINISH_SECONDS)  # the machine may be busy
    async with running(tmp_path, database_url, clock, relay_to(world.mail)) as server:
        await put_all_under_way(server, world)
        asyncio.get_running_loop().call_later(0.2, world.may_answer.set)
    clock.turn(2 * LEASE)
    async with running(tmp_path, database_url, clock, relay_to(world.mail), token=server.token) as server:
        await until_all_are_done(server)
    require_one_of_each(world)
