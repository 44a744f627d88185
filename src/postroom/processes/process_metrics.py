"""Counters and histograms of this process, for `/metrics`: plain numbers, several times faster than the
library's, and without its import.
"""

import asyncio
import bisect
import threading
from collections import Counter
from collections.abc import Sequence

from postroom.processes import descriptors


class LabelCounter:
    """A count for each value of a label with few values."""

    def __init__(self, name: str, label: str, help: str) -> None:
        self.name, self.label, self.help = name, label, help
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def increment(self, value: str, by: int = 1) -> None:
        with self._lock:
            self._counts[value] += by

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


class Histogram:
    """How many values were at most each bound."""

    def __init__(self, name: str, bounds: Sequence[float], help: str) -> None:
        self.name, self.bounds, self.help = name, bounds, help
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        place = bisect.bisect_left(self.bounds, value)
        with self._lock:
            self._counts[place] += 1
            self._sum += value

    def read(self) -> tuple[list[int], float]:
        with self._lock:
            return list(self._counts), self._sum


class RequestCounts:
    """Answered requests and their duration, by route."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, int]] = Counter()  # by route and status
        self.seconds: dict[str, Histogram] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        self.answered[route, status] += 1
        if route not in self.seconds:
            self.seconds[route] = Histogram(route, REQUEST_SECONDS, "")
        self.seconds[route].observe(seconds)


PAUSE_PROBE_SECONDS = 0.5
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

EVENTS = LabelCounter(
    "postroom_events",
    "kind",
    "Events: emails in (message.received), out (message.sent), failed, held and so on.",
)
MAIL_ATTEMPTS = LabelCounter(
    "postroom_mail_attempts",
    "outcome",
    "Attempts to deliver an email to a recipient: done, again (later) or failed (for good).",
)
WEBHOOK_ATTEMPTS = LabelCounter(
    "postroom_webhook_attempts",
    "outcome",
    "Attempts to post an event to a webhook: done, again (later) or failed (for good).",
)
DAMAGED_READS = LabelCounter(
    "postroom_damaged_reads",
    "what",
    "Reads that found damaged bytes. Any is an alarm: the log names it, postroom verify finds the others.",
)
ANALYSIS_FAILURES = LabelCounter(
    "postroom_analysis_failures",
    "reader",
    "Emails delivered with analysis failed, since a reader raised an error: report its traceback.",
)
REFUSALS = LabelCounter("postroom_mail_refused", "reason", "Emails refused in SMTP: junk or a dmarc policy.")
BATCHES = Histogram(
    "postroom_write_batch_size", (1, 2, 5, 10, 20, 50, 100, 200, 500), "Writes that shared a commit."
)
WAITS = Histogram("postroom_write_wait_seconds", _SECONDS, "How long the first write of each batch waited.")
PAUSES = Histogram(
    "postroom_loop_pause_seconds",
    _SECONDS,
    "How late the event loop woke up: everything on it waited that long.",
)

COUNTERS = (EVENTS, MAIL_ATTEMPTS, WEBHOOK_ATTEMPTS, DAMAGED_READS, ANALYSIS_FAILURES, REFUSALS)
HISTOGRAMS = (BATCHES, WAITS, PAUSES)
BLOB, DATABASE, INDEX = "blob", "database", "search index"
DONE, AGAIN, FAILED = "done", "again", "failed"


class _Call(threading.local):
    """The call that a writer thread runs: its events count only after the commit."""

    kinds: list[str] | None = None


_call = _Call()


def begin_call() -> Sequence[str]:
    """Returns a new list that collects the kinds of this thread's events until its next call begins."""
    _call.kinds = []
    return _call.kinds


def record_event(kind: str) -> None:
    if _call.kinds is None:
        EVENTS.increment(kind)
    else:
        _call.kinds.append(kind)


async def measure_pauses() -> None:
    """Measure how late the event loop wakes up: everything on it had to wait so long."""
    loop = asyncio.get_running_loop()
    while True:
        due_at = loop.time() + PAUSE_PROBE_SECONDS
        await asyncio.sleep(PAUSE_PROBE_SECONDS)
        PAUSES.observe(max(0.0, loop.time() - due_at))
        descriptors.warn_if_none_are_left()
