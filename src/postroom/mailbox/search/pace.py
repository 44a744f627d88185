"""How long the index rests between two batches."""

import time
from collections.abc import Callable

RESTS = 0.5
RESTS_IN_A_CROWD = 6
CROWD = 0.65  # the share of a core, used by the whole process, above which it rests longer


class Pace:
    """Rests in proportion to the work time, longer when mail and requests keep the process busy."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.process_time
    ) -> None:
        self._now, self._used = now, used
        self._looked_at, self._used_then = now(), used()

    def rest(self, worked_seconds: float) -> float:
        now, used = self._now(), self._used()
        is_crowd = used - self._used_then > CROWD * (now - self._looked_at)
        self._looked_at, self._used_then = now, used
        return worked_seconds * (RESTS_IN_A_CROWD if is_crowd else RESTS)
