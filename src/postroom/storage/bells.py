"""Bells wake loops that wait for work. A ring is a hint; the rows are the truth."""

import asyncio

# Long waits end at common moments, a quarter of a second apart: an idle process wakes once for many loops.
LONG_SECONDS = 1.0
MOMENTS_A_SECOND = 4


class BellSubscription:
    """For one listener at a time."""

    def __init__(self, subscriptions: dict["BellSubscription", None]) -> None:
        self._is_rung = False
        self._waiting: asyncio.Future[None] | None = None
        self._subscriptions = subscriptions
        subscriptions[self] = None

    async def wait(self, timeout: float) -> bool:
        """Return whether it was rung."""
        if not self._is_rung:
            loop = asyncio.get_running_loop()
            ends = loop.time() + timeout
            if timeout >= LONG_SECONDS:
                ends = round(ends * MOMENTS_A_SECOND) / MOMENTS_A_SECOND
            waiting = self._waiting = loop.create_future()
            timer = loop.call_at(ends, _end, waiting)
            try:
                await waiting
            finally:
                timer.cancel()
                self._waiting = None
        heard, self._is_rung = self._is_rung, False
        return heard

    def wake(self) -> None:
        self._is_rung = True
        if self._waiting is not None:
            _end(self._waiting)

    def close(self) -> None:
        self._subscriptions.pop(self, None)


def _end(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


class Bells:
    """The bells of one process. Used from its event loop only."""

    def __init__(self) -> None:
        # Rung in order, so that a simulation can be repeated.
        self._subscriptions: dict[str, dict[BellSubscription, None]] = {}

    def listen(self, bell: str) -> BellSubscription:
        return BellSubscription(self._subscriptions.setdefault(bell, {}))

    def ring(self, *bells: str) -> None:
        for bell in bells:
            for subscription in self._subscriptions.get(bell, ()):
                subscription.wake()

    def ring_all(self) -> None:
        self.ring(*self._subscriptions)
