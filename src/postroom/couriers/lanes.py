"""Limits on concurrent deliveries, per destination and overall: a slow destination delays only itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lanes:
    """At most `per_key` at a time for one key and `overall` for all, in order of arrival.

    The key's own lane comes first: however many wait for a slow key, at most `per_key` of them are in the
    common queue before others.
    """

    def __init__(self, *, per_key: int, overall: int) -> None:
        self._per_key = per_key
        self._overall = asyncio.Semaphore(overall)
        self._lanes: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def enter(self, key: str) -> AsyncIterator[None]:
        lane = self._lanes.setdefault(key, asyncio.Semaphore(self._per_key))
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lane, self._overall:
                yield
        finally:
            self._leave(key)

    def _leave(self, key: str) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._lanes[key]
