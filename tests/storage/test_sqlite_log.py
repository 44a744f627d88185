"""SQLite's log is copied into the database while the server runs, and no commit waits for a large copy."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from postroom.storage.database import Tx
from postroom.storage.engines import sqlite, sqlite_log
from postroom.storage.engines.sqlite import SqliteSession, connect, connect_writer, open_sqlite
from postroom.storage.engines.sqlite_log import LogCopier, Turns, next_pause
from tests.doubles import START
from tests.waiting import until

BYTES = 8_000_000  # more than an empty database has
PAGES_OF_A_COMMIT = 10
LONG_PAGES = 100


def add_much(tx: Tx) -> None:
    tx.run("create table jottings (content blob)")
    tx.run("insert into jottings (content) values (:content)", content=b"x" * BYTES)


async def test_what_was_written_reaches_the_database_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "postroom.db"
    db = open_sqlite(path, START)
    try:
        await db.write(add_much)
        await until(lambda: path.stat().st_size >= BYTES)
    finally:
        await db.close()
    assert not (tmp_path / "postroom.db-wal").exists()


async def test_the_writer_never_copies_the_log_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "postroom.db"
    monkeypatch.setattr(sqlite, "LATEST_CHECKPOINT_PAGES", 10)
    db = open_sqlite(path, START)
    try:
        await asyncio.to_thread(db._checkpointer.close)  # nobody else does
        await db.write(add_much)
        assert path.stat().st_size < BYTES
    finally:
        await db.close()


class WatchedTurns(Turns):
    """Counts how often the writer had to stand, and knows whether it stands now."""

    def __init__(self) -> None:
        super().__init__()
        self.stops = 0
        self.is_stopped = False

    @contextmanager
    def between_transactions(self) -> Iterator[None]:
        with super().between_transactions():
            self.stops += 1
            self.is_stopped = True
            yield
            self.is_stopped = False


@dataclass
class BusyLog:
    """A log whose writer is in the middle of a transaction at every copy, unless it rests or has to stand."""

    path: Path
    turns: WatchedTurns = field(default_factory=WatchedTurns)
    lengths: list[int] = field(default_factory=list)  # of the log, at each copy
    copied_while_stopped: list[int] = field(default_factory=list)
    modes: set[str] = field(default_factory=set)
    is_idle: bool = False

    def __post_init__(self) -> None:
        self.writer = SqliteSession(self.path, connect_writer, self.turns)
        self.writer.begin()
        self.writer.tx.run("create table jottings (content blob)")
        self.writer.commit()
        self.copier = LogCopier(WatchedConnection(self), self.turns)

    @contextmanager
    def in_mid_transaction(self) -> Iterator[None]:
        """It began before the copy, so it cannot begin the log anew; it ends behind the copy."""
        if self.turns.is_stopped or self.is_idle:
            yield
            return
        self.writer.begin()
        self.writer.tx.run(f"insert into jottings values (zeroblob({PAGES_OF_A_COMMIT * 4000}))")
        yield
        self.writer.commit()

    def note(self, statement: str, pages: int, copied: int) -> None:
        self.modes.add(statement)
        self.lengths.append(pages)
        if self.turns.is_stopped:
            self.copied_while_stopped.append(copied)

    def close(self) -> None:
        self.copier.close()
        self.writer.close()


class WatchedConnection(sqlite3.Connection):
    """A real one, whose copies are told of."""

    def __init__(self, log: BusyLog) -> None:
        super().__init__(log.path, isolation_level=None)
        self._log = log
        self._done = 0

    def execute(self, statement: str, *params: Any) -> sqlite3.Cursor:
        if not statement.startswith("pragma wal_checkpoint"):
            return super().execute(statement, *params)
        with self._log.in_mid_transaction():
            busy, pages, done = super().execute(statement).fetchone()
        self._log.note(statement, pages, done - self._done if done >= self._done else done)
        self._done = done
        return super().execute(f"select {busy}, {pages}, {done}")


@pytest.fixture
def busy_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BusyLog]:
    monkeypatch.setattr(sqlite_log, "LONG_LOG_PAGES", LONG_PAGES)
    with closing(connect(tmp_path / "postroom.db")), closing(BusyLog(tmp_path / "postroom.db")) as log:
        yield log


def test_the_log_stays_short_though_the_writer_is_never_idle(busy_log: BusyLog) -> None:
    for _ in range(200):
        busy_log.copier.step()
    assert len(busy_log.lengths) * PAGES_OF_A_COMMIT > 10 * LONG_PAGES
    assert max(busy_log.lengths) <= LONG_PAGES + 4 * PAGES_OF_A_COMMIT


def test_the_writer_stands_only_for_the_pages_of_the_last_moment(busy_log: BusyLog) -> None:
    for _ in range(200):
        busy_log.copier.step()
    assert busy_log.copied_while_stopped
    assert max(busy_log.copied_while_stopped) <= 2 * PAGES_OF_A_COMMIT
    assert busy_log.turns.stops <= len(busy_log.lengths) * 2 * PAGES_OF_A_COMMIT / LONG_PAGES
    assert busy_log.modes == {"pragma wal_checkpoint(passive)"}  # the others keep the writer out meanwhile


def test_a_writer_that_rests_now_and_then_never_has_to_stand(busy_log: BusyLog) -> None:
    for number in range(400):
        busy_log.is_idle = number % 4 == 0
        busy_log.copier.step()
    assert busy_log.turns.stops == 0
    assert max(busy_log.lengths) < LONG_PAGES


def test_the_writer_does_not_stand_while_a_reader_keeps_the_log_from_beginning_anew(
    busy_log: BusyLog,
) -> None:
    with closing(connect(busy_log.path)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from jottings").fetchone()
        for _ in range(30):
            busy_log.copier.step()
        assert busy_log.lengths[-1] > 2 * LONG_PAGES
        assert busy_log.turns.stops == 0
        reader.execute("rollback")
    for _ in range(3):
        busy_log.copier.step()
    assert busy_log.turns.stops > 0
    assert busy_log.lengths[-1] < LONG_PAGES


def test_a_copy_that_falls_behind_stops_the_writer_before_the_log_is_endless(
    busy_log: BusyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "LITTLE_PAGES", 1)  # never reached: each copy finds more
    monkeypatch.setattr(sqlite_log, "LONGEST_LOG_PAGES", 3 * LONG_PAGES)
    for _ in range(200):
        busy_log.copier.step()
    assert max(busy_log.lengths) <= 3 * LONG_PAGES + 2 * PAGES_OF_A_COMMIT


async def test_a_transaction_begins_after_the_copy_that_asked_to_be_alone(tmp_path: Path) -> None:
    turns = Turns()
    session = SqliteSession(tmp_path / "postroom.db", connect_writer, turns)
    with turns.between_transactions():
        beginning = asyncio.create_task(asyncio.to_thread(session.begin))
        await asyncio.sleep(0.05)
        assert not beginning.done()
    async with asyncio.timeout(120):
        await beginning
    session.rollback()
    with turns.between_transactions():  # free again, however a transaction ended
        pass
    session.close()


def test_steps_come_the_faster_the_more_there_is_to_copy() -> None:
    assert next_pause(0.25, sqlite_log.STEP_PAGES) == 0.25
    assert next_pause(0.25, 2 * sqlite_log.STEP_PAGES) == 0.125
    assert next_pause(0.1, sqlite_log.STEP_PAGES // 2) == 0.2
    assert next_pause(0.02, 10**6) == sqlite_log.SHORTEST_PAUSE_SECONDS
    assert next_pause(0.25, 0) == sqlite_log.LONGEST_PAUSE_SECONDS
