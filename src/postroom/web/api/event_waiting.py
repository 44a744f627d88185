"""Waiting for a message: the first that matches, or nothing at the timeout."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom import ids
from postroom.events import event_log
from postroom.events.event_log import Event, EventChoice
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import Payload
from postroom.mailbox import inboxes, message_json, messages
from postroom.mailbox.search import message_search
from postroom.operations import assignments
from postroom.resources import Resources
from postroom.web.call import Call, Tx
from postroom.web.interface import answer_shapes
from postroom.web.interface.bodies.body import WaitQuery
from postroom_mail.search.query import Query

T = TypeVar("T")

PAGE = 100
WHOLE_LOG = "0"
SECONDS = 10.0


async def wait_for_message(call: Call, inbox_id: str, query: WaitQuery) -> answer_shapes.RawMessageOrNothing:
    """Wait for an inbound message that matches; 204 when none came in time"""
    asked = message_search.parse(query.q) if query.q else None
    if asked is not None:
        asked = await call.resources.db.read(assignments.with_assignees, call.caller, asked)
    position = await call.resources.db.read(find_start, call, inbox_id, query.after)
    found = await first_match(call, inbox_id, position, query, asked)
    if found is None:
        return Response(status_code=204)
    return Response(await call.resources.db.read(show, call, found.message_id), media_type="application/json")


def find_start(tx: Tx, call: Call, inbox_id: str, after: str | None) -> int:
    inboxes.get(tx, call.scope, inbox_id)
    if after is None:
        return event_log.last_position(tx, call.account_id)
    if after == WHOLE_LOG:
        return 0
    if ids.is_meant_as(ids.MESSAGE, after):
        return event_log.position_of_message(tx, call.account_id, inbox_id, after)
    return event_log.position_of(tx, call.scope, after)


async def first_match(
    call: Call, inbox_id: str, position: int, query: WaitQuery, asked: Query | None
) -> Event | None:
    """Listens before it reads, so that no message is missed in between."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + query.timeout
    wanted = EventChoice(call.scope, frozenset({inbox_id}), frozenset({MESSAGE_RECEIVED}))
    read_aside = partial(read_long, call.resources)
    # A hundred whole events may take long to read, so a log is passed over beside the loop.
    read: Callable[..., Awaitable[Any]] = call.resources.db.read if query.after is None else read_aside
    with closing(call.resources.db.listen(event_log.bell(call.account_id))) as subscription:
        while True:
            page: LookedThrough = await read(list_matching, wanted, position, query)
            for event in page.matching:
                if asked is None or await read_aside(answers, asked, event.message_id):
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


class LookedThrough(Struct, frozen=True):
    """A part of the log: what matches in it, and where the next part begins."""

    matching: list[Event]
    position: int
    has_more: bool


def list_matching(tx: Tx, wanted: EventChoice, position: int, query: WaitQuery) -> LookedThrough:
    page = event_log.list_after(tx, wanted, position, PAGE)
    found = [event for event in page.events if matches(event, query)]
    return LookedThrough(found, page.last_position if page.events else position, page.has_more)


def matches(event: Event, query: WaitQuery) -> bool:
    payload = msgspec.json.decode(event.payload, type=Payload)
    return (
        query.sender.lower() in payload.message.sender.lower()
        and query.subject.lower() in payload.message.subject.lower()
        and query.thread_id in ("", payload.thread_id)
    )


def answers(tx: Tx, asked: Query, message_id: str) -> bool:
    message = messages.find(tx, message_id)
    return message is not None and message_search.answers(tx, asked, message)


def show(tx: Tx, call: Call, message_id: str) -> bytes:
    message = messages.get(tx, call.scope, message_id)
    return message_json.to_json(tx, [message], call.links())[0]
