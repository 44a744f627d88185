"""Wait for a message: return the first that matches, or nothing at the timeout."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Annotated, Any, TypeVar

from starlette.responses import Response

from postroom.events import event_log
from postroom.events.event_log import Event, EventChoice
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.mailbox import message_json, messages
from postroom.mailbox.search import message_search
from postroom.operations import assignments, events
from postroom.operations.events import LookedThrough, WaitQuery
from postroom.operations.messages import Message
from postroom.resources import Resources
from postroom.web.call import Call, Tx
from postroom_mail.search.query import Query

T = TypeVar("T")

RawMessageOrNothing = Annotated[Response, Message]
SECONDS = 10.0


async def wait_for_message(call: Call, inbox_id: str, query: WaitQuery) -> RawMessageOrNothing:
    """Wait for an inbound message that matches; 204 when none came in time"""
    asked = message_search.parse(query.q) if query.q else None
    if asked is not None:
        asked = await call.resources.db.read(assignments.with_assignees, call.caller, asked)
    position = await call.resources.db.read(events.find_start, call.caller, inbox_id, query.after)
    found = await first_match(call, inbox_id, position, query, asked)
    if found is None:
        return Response(status_code=204)
    return Response(await call.resources.db.read(show, call, found.message_id), media_type="application/json")


async def first_match(
    call: Call, inbox_id: str, position: int, query: WaitQuery, asked: Query | None
) -> Event | None:
    """Return the first event that matches, or None. Listen before reading, to miss no message."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + query.timeout
    wanted = EventChoice(call.scope, frozenset({inbox_id}), frozenset({MESSAGE_RECEIVED}))
    read_aside = partial(read_long, call.resources)
    # A hundred whole events may take long to read, so a log is passed over next to the loop.
    read: Callable[..., Awaitable[Any]] = call.resources.db.read if query.after is None else read_aside
    with closing(call.resources.db.listen(event_log.bell(call.account_id))) as subscription:
        while True:
            page: LookedThrough = await read(events.list_matching, wanted, position, query)
            for event in page.matching:
                if asked is None or await read_aside(events.answers, asked, event.message_id):
                    return event
            position = page.position
            left = ends - loop.time()
            if page.has_more:
                continue
            read = call.resources.db.read  # from here on there is little
            if left <= 0 or await call.is_over():
                return None
            await subscription.wait(min(left, 1.0))


async def read_long(resources: Resources, fn: Callable[..., T], *given: Any) -> T:
    return await resources.db.read_long(fn, SECONDS, *given)


def show(tx: Tx, call: Call, message_id: str) -> bytes:
    message = messages.get(tx, call.scope, message_id)
    return message_json.to_json(tx, [message], call.links())[0]
