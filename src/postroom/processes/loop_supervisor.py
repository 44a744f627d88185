"""Loops that must not end: a failure is logged and shown by /ready, and the loop restarts after a pause."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial

from msgspec import Struct

from postroom import log
from postroom.clock import SECOND, Clock, to_iso
from postroom.errors import Unavailable

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 30.0
AWAY_PAUSE_SECONDS = 0.5  # when database or blob store are unreachable: that is known, so a retry is cheap
# A loop that works for so long has recovered; one that fails for so long makes the server not ready.
STEADY_SECONDS = 5.0
PATIENCE = 15 * SECOND
TASK = "loop"
Loop = Callable[[], Coroutine[None, None, None]]
ACCOUNT_MARK = ":"  # the part of a loop's name after it is for the log only


class Failure(Struct):
    since: int
    count: int = 0
    is_away: bool = False  # database or blob store are unreachable, which /ready checks itself


class LoopSupervisor:
    """Which loops fail at the moment, and since when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: dict[str, Failure] = {}
        self.failures: Counter[str] = Counter()

    def run(self, stack: contextlib.AsyncExitStack, name: str, loop: Loop) -> None:
        """Supervises the loop until the stack is closed."""
        stack.push_async_callback(self.supervise(name, loop).stop)

    def supervise(self, name: str, loop: Loop) -> "SupervisedLoop":
        """Runs the loop until it is stopped. A loop that returns has failed too."""
        return SupervisedLoop(self, name, loop)

    def failed(self, name: str, error: Exception) -> float:
        """Returns the seconds to wait before the next try."""
        failure = self._failing.setdefault(name, Failure(self._clock.now()))
        failure.count += 1
        failure.is_away = isinstance(error, Unavailable)
        self.failures[public_name(name)] += 1
        longest = AWAY_PAUSE_SECONDS if failure.is_away else LONGEST_PAUSE_SECONDS
        pause = min(FIRST_PAUSE_SECONDS * float(2 ** min(failure.count - 1, 20)), longest)
        self._log(name, error, failure.count)
        return pause

    def _log(self, name: str, error: Exception, failures: int) -> None:
        """Log the error, at first with its traceback, then less often: repeats must not fill the disk."""
        if failures == 1 and isinstance(error, Unavailable):
            log.get().error("a loop waits", loop=name, reason=str(error.__cause__ or error))
        elif failures == 1:
            log.get().exception("a loop failed", error, loop=name, reason=str(error))
        elif failures & (failures - 1) == 0:
            log.get().error("a loop still fails", loop=name, reason=str(error), failures=failures)

    def works(self, name: str) -> None:
        if self._failing.pop(name, None) is not None:
            log.get().info("a loop works again", loop=name)

    def forget(self, name: str) -> None:
        """Forget a loop that is not needed any more."""
        self._failing.pop(name, None)

    def failing(self) -> Counter[str]:
        """Return how many loops of each name fail now."""
        return Counter(map(public_name, self._failing))

    def stuck(self) -> list[str]:
        """Return the loops that have failed for long, as text."""
        limit = self._clock.now() - PATIENCE
        return [
            f"{public_name(name)} since {to_iso(failure.since)}"
            for name, failure in sorted(self._failing.items())
            if failure.since <= limit and not failure.is_away
        ]


class SupervisedLoop:
    """Runs a loop in its own task; after each end, restarts it after a pause."""

    def __init__(self, supervisor: LoopSupervisor, name: str, loop: Loop) -> None:
        self._supervisor = supervisor
        self._name = name
        self._loop = loop
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None  # the next start, or when it has recovered
        self._begin()

    def cancel(self) -> None:
        """Cancel once: a second cancellation would interrupt what the loop still finishes."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._cancel_timer()
        self._task.cancel()

    async def stop(self) -> None:
        self.cancel()
        await asyncio.wait({self._task})

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._loop(), name=f"{TASK} {self._name}")
        self._task.add_done_callback(self._ended)

    def _begin_again(self) -> None:
        self._begin()
        self._timer = self._in(STEADY_SECONDS, partial(self._supervisor.works, self._name))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Handle the end of a loop: by an error, an unexpected cancellation, or by returning."""
        error = None if task.cancelled() else task.exception()
        self._cancel_timer()
        if self._is_stopped:
            return
        if not isinstance(error, Exception):
            error = RuntimeError(f"the loop {self._name} came to an end")
        self._timer = self._in(self._supervisor.failed(self._name, error), self._begin_again)

    def _in(self, seconds: float, do: Callable[[], None]) -> asyncio.TimerHandle:
        return self._task.get_loop().call_later(seconds, do)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def public_name(name: str) -> str:
    return name.partition(ACCOUNT_MARK)[0]
