"""Bells wake loops that wait for work. A ring is a hint; the rows are the truth."""

import asyncio
import contextlib


class BellEar:
    def __init__(self, ears: dict["BellEar", None]) -> None:
        self._rung = asyncio.Event()
        self.hear = self._rung.set  # without a wrapper: ten thousand may be rung at once
        self._ears = ears
        ears[self] = None

    async def wait(self, timeout: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        heard = self._rung.is_set()
        self._rung.clear()
        return heard

    def close(self) -> None:
        self._ears.pop(self, None)


class Bells:
    """The bells of one process. Used from its event loop only."""

    def __init__(self) -> None:
        self._ears: dict[str, dict[BellEar, None]] = {}  # rung in order, so that a simulation can be repeated

    def listen(self, bell: str) -> BellEar:
        return BellEar(self._ears.setdefault(bell, {}))

    def ring(self, *bells: str) -> None:
        for bell in bells:
            for subscription in self._ears.get(bell, ()):
                subscription.hear()

    def ring_all(self) -> None:
        self.ring(*self._ears)
