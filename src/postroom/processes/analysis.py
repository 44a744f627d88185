"""Runs readers of meaning. A reader that raises loses its own answer, never the email that it reads."""

import traceback
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from postroom import log
from postroom.processes import process_metrics

T = TypeVar("T")


class Analysis:
    """The readers of one email. `failed` names the ones that raised."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def run(self, reader: str, otherwise: T, read: Callable[[], T]) -> T:
        """Return what `read` returns, or `otherwise` if it raises."""
        try:
            return read()
        except Exception as error:
            self.record_failure(reader, error)
            return otherwise

    async def wait_for(self, reader: str, otherwise: T, read: Callable[[], Awaitable[T]]) -> T:
        """Wait like `run`, for a reader that works elsewhere. Cancelled early, it never begins."""
        try:
            return await read()
        except Exception as error:
            self.record_failure(reader, error)
            return otherwise

    def record_failure(self, reader: str, error: Exception) -> None:
        """Log the traceback, but not for every email: anyone may send many that fail."""
        self.failed.append(reader)
        trace = "".join(traceback.format_exception(error))
        log.get().seldom(f"an email could not be analyzed: {reader}", exception=trace)


def count(failed: Iterable[str]) -> None:
    """Count failed readers for `/metrics`. Call it in the server: a worker's counters are not scraped."""
    for reader in failed:
        process_metrics.ANALYSIS_FAILURES.increment(reader)
