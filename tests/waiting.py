"""Waiting for what another thread or process brings about."""

import asyncio
from collections.abc import Callable

LIMIT_SECONDS = 120
PAUSE_SECONDS = 0.01


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():
            await asyncio.sleep(PAUSE_SECONDS)
