"""Checks the whole database next to all other work: damage is silent until it is read."""

import asyncio

from postroom import log
from postroom.processes import process_metrics
from postroom.resources import Resources

FIRST_SECONDS = 5.0  # the start has other things to do
PAUSE_SECONDS = 24 * 3600.0


async def watch_integrity(resources: Resources) -> None:
    """Runs until cancelled: after the start, and then once a day."""
    pause = FIRST_SECONDS
    while True:
        await asyncio.sleep(pause)
        await check_integrity(resources)
        pause = PAUSE_SECONDS


async def check_integrity(resources: Resources) -> None:
    """Check the database. /ready reports damage until a check finds none."""
    found = await resources.db.find_damage()
    if found:
        process_metrics.DAMAGED_READS.increment(process_metrics.DATABASE)
        log.get().error("the database is damaged", found=found)
    resources.damage.found = found
    if of_index := await resources.db.find_damage(of_index=True):
        process_metrics.DAMAGED_READS.increment(process_metrics.INDEX)
        log.get().error("the search index is rebuilt", reason=of_index)
        await resources.db.repair_index(is_asked=True)
