"""Asks a question once, for all who want its answer at the same time or within some minutes."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

MOST_KEPT = 256
KEPT_MS = 10 * 60 * 1000


class AskedOnce(Generic[Answer]):
    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[int, asyncio.Future[Answer]]] = OrderedDict()

    async def get(self, key: bytes, ask: Callable[[], Awaitable[Answer]], now: int) -> Answer:
        """Return the answer to the question with this key. Others still get it if one stops waiting."""
        asked_at, answer = self._kept.get(key, (0, None))
        if answer is None or answer.cancelled() or now - asked_at > KEPT_MS:
            answer = asyncio.ensure_future(ask())
            self._kept[key] = (now, answer)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return await asyncio.shield(answer)
