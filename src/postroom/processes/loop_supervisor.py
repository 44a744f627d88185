"""Loops that must not end: what fails is logged, started again after growing pauses, and seen by /ready."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from postroom import log
from postroom.clock import SECOND, Clock, to_iso
from postroom.errors import Unavailable

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 30.0
AWAY_PAUSE_SECONDS = 0.5  # for the database or the store: while it is known to be away, asking costs nothing
# A loop that works for so long has recovered; one that fails for so long makes the server not ready.
STEADY_SECONDS = 5.0
PATIENCE = 15 * SECOND
TASK = "loop"
Loop = Callable[[], Coroutine[None, None, None]]
ACCOUNT_MARK = ":"  # what stands behind it in a loop's name is for the log alone


@dataclass(slots=True)
class Trouble:
    since: int
    failures: int = 0
    is_away: bool = False  # it waits for the database or the store, which /ready asks itself


class LoopSupervisor:
    """What does not work at the moment, and since when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, Trouble] = {}
        self.failures: Counter[str] = Counter()

    async def supervise(self, name: str, loop: Loop) -> None:
        """Runs the loop until cancelled. A loop that merely ends has failed too."""
        while True:
            recovery = asyncio.get_running_loop().call_later(STEADY_SECONDS, self.works, name)
            try:
                await _run(name, loop)
            except Exception as error:
                pause = self.failed(name, error)
            finally:
                recovery.cancel()
            await asyncio.sleep(pause)

    def failed(self, name: str, error: Exception) -> float:
        """Inside an except block. Gives the pause to make before the next try, in seconds."""
        trouble = self._troubles.setdefault(name, Trouble(self._clock.now()))
        trouble.failures += 1
        trouble.is_away = isinstance(error, Unavailable)
        self.failures[public_name(name)] += 1
        longest = AWAY_PAUSE_SECONDS if trouble.is_away else LONGEST_PAUSE_SECONDS
        pause = min(FIRST_PAUSE_SECONDS * float(2 ** min(trouble.failures - 1, 20)), longest)
        self._note(name, error, trouble.failures)
        return pause

    def _note(self, name: str, error: Exception, failures: int) -> None:
        """With the traceback once, and then ever more rarely: what fails each second must not fill a disk."""
        if failures == 1:
            log.get().exception("a loop failed", loop=name, reason=str(error))
        elif failures & (failures - 1) == 0:
            log.get().error("a loop still fails", loop=name, reason=str(error), failures=failures)

    def works(self, name: str) -> None:
        if self._troubles.pop(name, None) is not None:
            log.get().info("a loop works again", loop=name)

    def forget(self, name: str) -> None:
        """The loop is not needed any more."""
        self._troubles.pop(name, None)

    def troubles(self) -> Counter[str]:
        """How many loops of each name do not work now."""
        return Counter(map(public_name, self._troubles))

    def stuck(self) -> list[str]:
        """Loops that have not worked for long, in words."""
        limit = self._clock.now() - PATIENCE
        return [
            f"{public_name(name)} since {to_iso(trouble.since)}"
            for name, trouble in sorted(self._troubles.items())
            if trouble.since <= limit and not trouble.is_away
        ]


async def _run(name: str, loop: Loop) -> None:
    """In a task of its own, so that whatever ends it, also a cancellation, does not end the supervision."""
    task = asyncio.create_task(loop(), name=f"{TASK} {name}")
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled():
        task.result()
    raise RuntimeError(f"the loop {name} came to an end")


def public_name(name: str) -> str:
    return name.partition(ACCOUNT_MARK)[0]
