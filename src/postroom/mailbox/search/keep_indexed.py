"""The loop of the search index: does little work itself, and starts a process for much."""

import asyncio
import contextlib
import os
import time

from postroom import log
from postroom.mailbox.search import index_process, index_upkeep, indexing
from postroom.mailbox.search.indexing import IndexStep
from postroom.mailbox.search.pace import Pace
from postroom.processes import process_metrics
from postroom.processes.child_processes import Child, ChildNotStarted, ChildSupervisor
from postroom.resources import Resources
from postroom.storage.data_folder import DATABASE_NAME

IDLE_SECONDS = 0.5
BLIND_SECONDS = 5.0  # a look at the tables although the database has not changed: a lease may have ended
TIDY_SECONDS = 60.0
LOOK_SECONDS = 5.0
SILENT_SECONDS = 120.0  # without an entry although there is much to do: a batch takes a second or two


async def keep_indexed(resources: Resources) -> None:
    """Runs until cancelled."""
    keeper = _Keeper(resources)
    try:
        while True:
            await keeper.turn()
    finally:
        await keeper.close()


class _Keeper:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._db = resources.db
        self._holder = index_upkeep.holder_of(resources.config.data_dir)
        self._pace = Pace()
        self._seen: tuple[int | None, float] = (None, 0.0)  # the database without work, and when it was seen
        self._tidied_at = time.monotonic()
        self._processes = ChildSupervisor("search index")
        self._may_start = resources.config.workers > 0 and not resources.config.database_url

    async def close(self) -> None:
        await self._processes.close()

    async def turn(self) -> None:
        try:
            if await self._repair():
                self._seen = (None, 0.0)
            rest = await self._work()
            self._resources.loops.works("search")
        except Exception as error:
            self._resources.loops.failed("search", error)
            rest = IDLE_SECONDS
        await asyncio.sleep(rest)

    async def _work(self) -> float:
        """Does what is due. Returns the seconds to rest."""
        version, seen = self._db.version(), self._seen
        if version is not None and version == seen[0] and time.monotonic() - seen[1] < BLIND_SECONDS:
            await self._tidy_at_times()
            return IDLE_SECONDS
        if self._may_start and await self._db.read(indexing.has_at_least, index_process.FEW):
            await self._have_much_indexed()
        started = time.monotonic()
        done = await indexing.step(self._db, self._holder, self._resources.now())
        self._seen = (None if done else version, time.monotonic())
        await self._tidy_at_times()
        rest = self._pace.rest(time.monotonic() - started)
        has_more = done is IndexStep.PART or (done and await self._db.read(indexing.has_full_batch))
        return rest if has_more else IDLE_SECONDS

    async def _repair(self) -> bool:
        """Return whether the index has another file now."""
        wrong = await self._db.repair_index()
        if wrong:
            process_metrics.DAMAGED_READS.increment(process_metrics.INDEX)
            log.get().error("the search index is rebuilt", reason=wrong)
        return bool(wrong)

    async def _tidy_at_times(self) -> None:
        if time.monotonic() - self._tidied_at > TIDY_SECONDS:
            self._tidied_at = time.monotonic()
            await index_upkeep.tidy(self._db)

    async def _have_much_indexed(self) -> None:
        """Uses a process until few changes come. If that fails, works here, and retries a process later."""
        with contextlib.suppress(ChildNotStarted):
            child = await self._start()
            try:
                await self._watch(child)
            except BaseException:
                self._processes.kill(child)
                raise
            if child.process.returncode:
                log.get().seldom("the process of the search index ended", code=child.process.returncode)
                await self._processes.replace(child)
            self._processes.kill(child)

    async def _start(self) -> Child:
        database = self._resources.config.data_dir / DATABASE_NAME
        arguments = (str(database.absolute()), self._holder, str(os.getpid()))
        return await self._processes.start(["-m", index_process.__name__, *arguments])

    async def _watch(self, child: Child) -> None:
        """Kills it if it makes no progress although there is much to do."""
        reached, moved_at = await self._db.read(index_upkeep.progress_mark), time.monotonic()
        while child.is_running:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await child.process.wait()
            if await self._repair():
                child.kill()
                await child.process.wait()
                return
            await self._tidy_at_times()
            self._resources.loops.works("search")
            now_reached = await self._db.read(index_upkeep.progress_mark)
            if now_reached != reached or not await self._db.read(indexing.has_full_batch):
                reached, moved_at = now_reached, time.monotonic()
            elif time.monotonic() - moved_at > SILENT_SECONDS:
                child.kill()
                await child.process.wait()
