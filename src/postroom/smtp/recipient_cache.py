"""Recipients found in the last second: many emails of one sender to one inbox cause one look-up a second."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from postroom.mailbox import inboxes
from postroom.resources import Resources
from postroom.smtp.backend import Accepted, RecipientDirectory, RecipientVerdict

LIFETIME_SECONDS = 1.0  # a deleted inbox takes email no longer than that
MAX_ADDRESSES = 10_000  # a dictionary attack asks for others all the time
LISTEN_SECONDS = 60.0


class CachedDirectory:
    """Keeps only recipients that exist: a new inbox gets mail from its first moment."""

    def __init__(self, directory: RecipientDirectory) -> None:
        self._directory = directory
        self._loop = asyncio.get_running_loop()
        self._cache: dict[str, tuple[RecipientVerdict, float]] = {}
        self._generation = 0

    def check_recipient(self, address: str) -> RecipientVerdict | Awaitable[RecipientVerdict]:
        verdict, expires_at = self._cache.get(address, (None, 0.0))
        if verdict is not None and self._loop.time() < expires_at:
            return verdict
        answer = self._directory.check_recipient(address)
        if isinstance(answer, Awaitable):
            return self._wait_for(address, answer)
        self._add(address, answer)
        return answer

    def clear(self) -> None:
        """Called after an inbox was deleted. A look-up that began before is not cached either."""
        self._cache.clear()
        self._generation += 1

    async def _wait_for(self, address: str, answer: Awaitable[RecipientVerdict]) -> RecipientVerdict:
        generation = self._generation
        verdict = await answer
        if generation == self._generation:
            self._add(address, verdict)
        return verdict

    def _add(self, address: str, verdict: RecipientVerdict) -> None:
        if not isinstance(verdict, Accepted):
            return
        if len(self._cache) >= MAX_ADDRESSES:
            self._cache.clear()
        self._cache[address] = verdict, self._loop.time() + LIFETIME_SECONDS


async def watch_deleted_inboxes(resources: Resources, act: Callable[[], None]) -> None:
    """Calls `act` whenever an inbox is deleted, until cancelled."""
    with closing(resources.db.listen(inboxes.GONE)) as subscription:
        while True:
            if await subscription.wait(LISTEN_SECONDS):
                act()
