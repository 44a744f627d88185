"""How long the event loop's thread works without a pause: processor time, whatever else the machine does."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass
class Watch:
    longest_seconds: float = 0.0


@contextlib.asynccontextmanager
async def watched_loop() -> AsyncIterator[Watch]:
    """Measure the longest turn of the loop, in processor time of its own thread."""
    watch = Watch()
    task = asyncio.create_task(_measure(watch))
    try:
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _measure(watch: Watch) -> None:
    before = time.thread_time()
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        watch.longest_seconds = max(watch.longest_seconds, now - before)
        before = now
