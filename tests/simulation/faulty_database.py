"""The real SQL on a real SQLite file, behind a way on which requests and answers are slow or lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from postroom.errors import Unavailable
from postroom.storage.bells import Bells, BellSubscription
from postroom.storage.engines import sqlite_index
from postroom.storage.engines.sqlite import SqliteSession, SqliteTx, connect
from tests.simulation.faults import CommitOutcome, Faults

AWAY_SECONDS = 1.0  # until somebody who asks a database that is away is told so


class SharedDatabase:
    """The one database of all nodes. While `is_away` it answers nobody."""

    def __init__(self, path: Path) -> None:
        sqlite_index.prepare(sqlite_index.path_beside(path))
        self.session = SqliteSession(path)
        self.index = SqliteSession(sqlite_index.path_beside(path), sqlite_index.connect)
        for session in (self.session, self.index):
            session.tx._connection.execute("pragma synchronous = off")  # power loss is tried elsewhere
        self._reader = sqlite_index.attach(connect(path), path)
        self.read_tx = SqliteTx(self._reader)
        self.bells = Bells()
        self.is_away = False
        self.endless: list[asyncio.Future[None]] = []  # what dead nodes wait for; else it would be collected

    def run(self, fn: Callable[[SqliteTx], Any], commits: bool, session: SqliteSession | None = None) -> Any:
        """One transaction. Gives its result, and rings what it asks for."""
        session = session or self.session
        session.tx.rung.clear()
        session.begin()
        try:
            result = fn(session.tx)
        except BaseException:
            session.rollback()
            raise
        if not commits:
            session.rollback()
            return result
        session.commit()
        self.bells.ring(*session.tx.rung)
        return result

    def close(self) -> None:
        self._reader.close()
        self.index.close()
        self.session.close()


class FaultyDatabase:
    """A node's way to it. Nothing that a dead node asks for is ever answered."""

    def __init__(self, shared: SharedDatabase, faults: Faults) -> None:
        self._shared = shared
        self._faults = faults
        self.is_dead = False
        self.has_crashed = False
        self._cut_offs: list[list[float]] = []

    @property
    def is_cut_off(self) -> bool:
        return bool(self._cut_offs) and len(self._cut_offs[-1]) == 1

    def cut_off(self) -> None:
        self._cut_offs.append([asyncio.get_running_loop().time()])

    def join_again(self) -> None:
        self._cut_offs[-1].append(asyncio.get_running_loop().time())

    def was_cut_off(self, since: float, until: float | None) -> bool:
        return any(
            (until is None or span[0] <= until) and (len(span) == 1 or span[1] >= since)
            for span in self._cut_offs
        )

    async def _travel(self) -> None:
        await asyncio.sleep(self._faults.travel_seconds())
        await self.stand_still_if_dead()
        if self.is_cut_off or self._shared.is_away:
            await asyncio.sleep(AWAY_SECONDS)
            await self.stand_still_if_dead()
            raise Unavailable("The database does not answer.")

    async def stand_still_if_dead(self) -> None:
        if self.is_dead:
            self._shared.endless.append(asyncio.get_running_loop().create_future())
            await self._shared.endless[-1]

    async def read(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await self._travel()
        return fn(self._shared.read_tx, *args, **kwargs)

    async def read_long(self, fn: Callable[..., Any], seconds: float, *args: Any, **kwargs: Any) -> Any:
        return await self.read(fn, *args, **kwargs)

    async def look_up(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self.read(fn, *args, **kwargs)

    def version(self) -> int | None:
        return None

    async def write(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._write(self._shared.session, fn, *args, **kwargs)

    async def write_index(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._write(self._shared.index, fn, *args, **kwargs)

    async def sync_index(self) -> None: ...

    async def _write(self, session: SqliteSession, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await self._travel()
        failure = self._faults.failure()
        if failure is CommitOutcome.REFUSED:
            raise Unavailable("The database refused it.")
        commits = failure is not CommitOutcome.ROLLED_BACK
        result = self._shared.run(lambda tx: fn(tx, *args, **kwargs), commits, session)
        if failure is not CommitOutcome.COMMITTED:
            self._faults.tell(f"{failure.name} {getattr(fn, '__name__', fn)}")
            raise Unavailable("The connection to the database was lost.")
        await asyncio.sleep(self._faults.answer_seconds())
        await self.stand_still_if_dead()
        return result

    async def write_together(self, fn: Callable[..., Any], item: Any, patience_seconds: float = 0.0) -> Any:
        return (await self.write(fn, [item]))[0]

    async def find_damage(self, of_index: bool = False) -> str:
        return ""

    async def repair_index(self, is_asked: bool = False) -> str:
        return ""

    def ring(self, *bells: str) -> None:
        if not self.is_dead and not self._faults.happens():
            self._shared.bells.ring(*bells)

    def listen(self, bell: str) -> BellSubscription:
        return self._shared.bells.listen(bell)

    async def close(self) -> None: ...
