"""Wakes snoozed threads whose time has come: the change and its event are one transaction."""

from contextlib import closing

from postroom.events import thread_events
from postroom.events.announce import announce_all
from postroom.events.kinds import THREAD_WOKEN
from postroom.mailbox import thread_states
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.storage.database import Tx


async def wake_threads(resources: Resources) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(thread_states.BELL)) as subscription:
        while True:
            is_any_due = await resources.db.read(thread_states.is_any_due, resources.now())
            woken = await resources.db.write(wake, resources.now()) if is_any_due else 0
            resources.loops.works("snoozed threads")
            if woken < thread_states.WOKEN_TOGETHER:
                await subscription.wait(IDLE_SECONDS)


def wake(tx: Tx, now: int) -> int:
    """Returns how many it woke."""
    woken = thread_states.wake_due(tx, now)
    announce_all(tx, [thread_events.notice(THREAD_WOKEN, each, now, reason="time") for each in woken], "")
    return len(woken)
