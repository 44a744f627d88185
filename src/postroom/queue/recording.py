"""Records outcomes: what the other side answered is stored, however long that takes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from postroom import log
from postroom.processes import pools
from postroom.queue.outcomes import TriedDelivery
from postroom.resources import Resources
from postroom.storage.journal import Journal

JOURNAL_NAME = "outcomes.journal"
NAME = "recording of outcomes"
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
TRIES_AT_START = 10

Write = Callable[[], Awaitable[list[str]]]  # in one transaction; returns the bells to ring
WriteTried = Callable[[TriedDelivery], Awaitable[list[str]]]
Key = tuple[str, int]  # a delivery, and the number of its attempt


class Recorder:
    """Retries an outcome that the database refuses until it is stored; its claim is kept meanwhile.

    It is also in a journal, which the next start reads. Storing the same outcome twice changes nothing.
    """

    def __init__(self, resources: Resources, journal: Journal) -> None:
        self._resources = resources
        self._journal = journal
        self._kept: dict[Key, bytes] = {}  # in the journal, and not yet in the database
        self._is_caught_up = False
        self._catching_up = asyncio.Lock()

    async def record(self, tried: TriedDelivery, write: Write, has_left: bool = True) -> None:
        """Returns once it is written. What has not left this server needs no journal: it is done again."""
        try:
            bells = await self._write(tried, write, has_left)
        except asyncio.CancelledError:
            if has_left:
                self._keep(tried)
            raise
        self._record_written(tried, bells)

    async def _write(self, tried: TriedDelivery, write: Write, has_left: bool) -> list[str]:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await write()
            except Exception as error:
                self._resources.loops.failed(NAME, error)
            if has_left and key_of(tried) not in self._kept:
                await pools.FILES.run(self._keep, tried)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _keep(self, tried: TriedDelivery) -> None:
        """Keep the outcome, noted in memory first, so that the journal is not removed while it is written."""
        record = self._kept[key_of(tried)] = msgspec.msgpack.encode(tried)
        try:
            self._journal.append(record)
        except OSError as error:
            log.get().error("an outcome cannot be kept", delivery=tried.delivery.id, reason=str(error))

    def _record_written(self, tried: TriedDelivery, bells: list[str]) -> None:
        """Clears the journal when nothing in it waits any more."""
        self._resources.loops.works(NAME)
        if self._kept.pop(key_of(tried), None) is not None and not self._kept:
            self._journal.rewrite([])
        self._resources.db.ring(*bells)

    async def catch_up(self, writers: Mapping[str, WriteTried]) -> None:
        """Store once what an earlier run left, by kind of delivery, before anything is claimed."""
        async with self._catching_up:
            if self._is_caught_up:
                return
            left = self._read()
            self._kept.update({key_of(tried): msgspec.msgpack.encode(tried) for tried in left})
            for tried in left:
                await self._catch_up_with(tried, writers[tried.delivery.kind])
            self._journal.rewrite(list(self._kept.values()))  # also without what could not be read
            self._is_caught_up = True

    def _read(self) -> list[TriedDelivery]:
        found: dict[Key, TriedDelivery] = {}
        for record in self._journal.read():
            try:
                tried = msgspec.msgpack.decode(record, type=TriedDelivery)
            except msgspec.MsgspecError as error:
                log.get().error("an outcome of an earlier run cannot be read", reason=str(error))
            else:
                found[key_of(tried)] = tried
        return list(found.values())

    async def _catch_up_with(self, tried: TriedDelivery, write: WriteTried) -> None:
        """Store an outcome. One that cannot be stored stays in the journal, and does not block others."""
        pause = FIRST_PAUSE_SECONDS
        for _ in range(TRIES_AT_START):
            try:
                bells = await write(tried)
            except Exception as error:
                self._resources.loops.failed(NAME, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            else:
                self._record_written(tried, bells)
                log.get().info("an outcome of an earlier run was recorded", delivery=tried.delivery.id)
                return
        self._resources.loops.forget(NAME)
        log.get().error("an outcome of an earlier run cannot be recorded", delivery=tried.delivery.id)


def key_of(tried: TriedDelivery) -> Key:
    return tried.delivery.id, tried.delivery.attempts
