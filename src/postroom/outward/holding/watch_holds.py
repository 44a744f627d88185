"""The loop over holds that are due: they expire, are released, or go on waiting."""

from contextlib import closing

from postroom.mailbox import holds
from postroom.outward.holding import decide
from postroom.queue import deliveries
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources

AT_ONCE = 50


async def watch_holds(resources: Resources) -> None:
    """Runs until cancelled. Each hold is read again and decided in its own transaction."""
    with closing(resources.db.listen(deliveries.HOLDS_BELL)) as subscription:
        while True:
            if await look_at_due(resources) < AT_ONCE:
                await subscription.wait(IDLE_SECONDS)


async def look_at_due(resources: Resources) -> int:
    """Returns how many were decided."""
    due = await resources.db.read(holds.list_due, AT_ONCE, resources.now())
    return sum([await look_at(resources, message_id) for message_id in due])


async def look_at(resources: Resources, message_id: str) -> bool:
    """A hold that cannot be decided does not block others."""
    try:
        bells = await resources.db.write(
            decide.look_at, message_id, resources.config.base_url, resources.now()
        )
    except Exception as error:
        resources.loops.failed("a hold", error)
        return False
    resources.loops.works("a hold")
    resources.db.ring(*bells)
    return True
