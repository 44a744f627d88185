"""The log of events over REST."""

import asyncio
from contextlib import closing

from postroom.events import event_log
from postroom.events.event_log import EventChoice, EventSlice
from postroom.operations import events
from postroom.operations.events import EventPage, EventQuery, show_events
from postroom.web.call import Call


async def list_events(call: Call, query: EventQuery) -> EventPage:
    """Read the log of events, oldest first; with `wait`, wait until there is one"""
    wanted = query.wanted(call.scope)
    if query.order == "desc":
        return show_events(await call.resources.db.read(events.newest_first, call.scope, wanted, query), None)
    position = await call.resources.db.read(events.position_after, call.scope, query.after)
    return show_events(await wait_for_events(call, wanted, position, query), query.after)


async def wait_for_events(
    call: Call, wanted: EventChoice | None, position: int, query: EventQuery
) -> EventSlice:
    """Return the next events, or none at the timeout. Listen before reading, to miss no event."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + query.wait
    with closing(call.resources.db.listen(event_log.bell(call.account_id))) as subscription:
        while True:
            found = await call.resources.db.read(events.next_after, wanted, position, query)
            left = ends - loop.time()
            if found.events or left <= 0 or await call.is_over():
                return found
            await subscription.wait(min(left, 1.0))
