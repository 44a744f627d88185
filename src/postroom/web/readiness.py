"""Whether the server works: it can store an email of any size, and its loops run."""

import asyncio
from collections.abc import Awaitable, Callable

from postroom import ids, log
from postroom.accounts import accounts
from postroom.errors import Unavailable
from postroom.processes import pools
from postroom.queue import leader_leases
from postroom.resources import Resources

CHECK_SECONDS = 5.0
FRESH_SECONDS = 1.0  # anybody may ask, and a check costs two writes to disk
FAULT_SECONDS = 0.25  # after a fault: a node that works again is needed soon


class Readiness:
    """Requests at about the same time get the same answer."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._row = f"ready {ids.trace()}"  # of this process: nodes do not wait for each other's
        self._checked_at = -FRESH_SECONDS
        self._fault: str | None = None
        self._reason = ""
        self._lock = asyncio.Lock()

    async def require(self) -> None:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._checked_at >= (FRESH_SECONDS if self._fault is None else FAULT_SECONDS):
                self._reason = ""
                fault = await self._find_fault()
                self._record_change(fault)
                self._fault, self._checked_at = fault, asyncio.get_running_loop().time()
        if self._fault is not None:
            raise Unavailable(self._fault, retry_after=5)

    def _record_change(self, fault: str | None) -> None:
        if fault is not None and fault != self._fault:
            log.get().error("not ready", reason=f"{fault} {self._reason}".rstrip())

    async def _find_fault(self) -> str | None:
        if self._resources.damage.found:
            return "The database file is damaged. To see where: postroom verify"
        if stuck := self._resources.loops.stuck():
            return f"These loops do not work: {', '.join(stuck)}."
        return await self._try("The database", self._store_a_row) or await self._try(
            "The store of large emails", self._store_a_blob
        )

    async def _try(self, what: str, store: Callable[[], Awaitable[None]]) -> str | None:
        """Return what fails. Anybody may ask, and a reason may name hosts and folders: it is only logged."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await store()
        except Exception as error:
            self._reason = _reason(error)
            return f"{what} accepts nothing now. The log says why."
        return None

    async def _store_a_row(self) -> None:
        resources = self._resources
        await resources.db.read(accounts.is_any)
        await resources.db.write(leader_leases.take, self._row, self._row, resources.now(), resources.now())
        await resources.db.write(leader_leases.leave, self._row, self._row)

    async def _store_a_blob(self) -> None:
        await pools.FILES.run(self._resources.blobs.check)


def _reason(error: Exception) -> str:
    return " ".join(str(error.__cause__ or error).split())[:200] or type(error).__name__
