"""The log of events over REST."""

import asyncio
from contextlib import closing

from msgspec import UNSET, Raw
from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.events import event_log
from postroom.events.event_log import EventChoice, EventSlice
from postroom.mailbox import inboxes
from postroom.web.call import Call, Tx
from postroom.web.interface import answer_shapes
from postroom.web.interface.bodies.body import EventQuery

NOTHING = EventSlice([], has_more=False)


async def list_events(call: Call, query: EventQuery) -> answer_shapes.EventPage:
    """Read the log of events, oldest first; with `wait`, wait until there is one"""
    wanted = query.wanted(call.scope)
    if query.order == "desc":
        return show(await call.resources.db.read(newest_first, call.scope, wanted, query), None)
    position = await call.resources.db.read(position_after, call.scope, query.after)
    return show(await wait_for_events(call, wanted, position, query), query.after)


def show(found: EventSlice, otherwise: str | None) -> answer_shapes.EventPage:
    given = found.events
    return answer_shapes.EventPage(
        [Raw(event.payload) for event in given], given[-1].id if given else otherwise, found.is_cut or UNSET
    )


def newest_first(tx: Tx, scope: Scope, wanted: EventChoice | None, query: EventQuery) -> EventSlice:
    position = None if query.after is None else event_log.position_of(tx, scope, query.after)
    chosen = narrow(tx, wanted, query.pod_id)
    return NOTHING if chosen is None else event_log.list_before(tx, chosen, position, query.limit)


def next_after(tx: Tx, wanted: EventChoice | None, position: int, query: EventQuery) -> EventSlice:
    chosen = narrow(tx, wanted, query.pod_id)
    return NOTHING if chosen is None else event_log.list_after(tx, chosen, position, query.limit)


def narrow(tx: Tx, wanted: EventChoice | None, pod_id: str | None) -> EventChoice | None:
    """None if nothing can be found, as in an unknown pod."""
    if wanted is None or pod_id is None:
        return wanted
    scope = inboxes.narrow(tx, wanted.scope, None, pod_id)
    return None if scope is None else replace(wanted, scope=scope)


def position_after(tx: Tx, scope: Scope, event_id: str | None) -> int:
    return 0 if event_id is None else event_log.position_of(tx, scope, event_id)


async def wait_for_events(
    call: Call, wanted: EventChoice | None, position: int, query: EventQuery
) -> EventSlice:
    """Listens before it reads, so that no event is missed in between."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + query.wait
    with closing(call.resources.db.listen(event_log.bell(call.account_id))) as subscription:
        while True:
            found = await call.resources.db.read(next_after, wanted, position, query)
            left = ends - loop.time()
            if found.events or left <= 0 or await call.is_over():
                return found
            await subscription.wait(min(left, 1.0))
