"""Waiting for a message: the first that matches, or nothing at the timeout."""

import asyncio
from contextlib import closing

import msgspec
from starlette.responses import Response

from postroom.events import event_log
from postroom.events.event_log import Event, EventChoice
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.payload import Payload
from postroom.mail.search.query import Query
from postroom.mailbox import inboxes, message_json, messages
from postroom.mailbox.search import message_search
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import WaitQuery
from postroom.web.interface.shapes import answer_shapes

PAGE = 100
WHOLE_LOG = "0"
SECONDS = 10.0


async def wait_for_message(call: Call, inbox_id: str, query: WaitQuery) -> answer_shapes.RawMessageOrNothing:
    """Wait for an inbound message that matches; 204 when none came in time"""
    asked = message_search.parse(query.q) if query.q else None
    position = await call.resources.db.read(find_start, call, inbox_id, query.after)
    found = await first_match(call, inbox_id, position, query, asked)
    if found is None:
        return Response(status_code=204)
    return Response(await call.resources.db.read(show, call, found.message_id), media_type="application/json")


def find_start(tx: Tx, call: Call, inbox_id: str, after: str | None) -> int:
    inboxes.get(tx, call.reach, inbox_id)
    if after is None:
        return event_log.last_position(tx, call.account_id)
    if after == WHOLE_LOG:
        return 0
    if after.startswith("msg_"):
        return event_log.position_of_message(tx, call.account_id, inbox_id, after)
    return event_log.position_of(tx, call.reach, after)


async def first_match(
    call: Call, inbox_id: str, position: int, query: WaitQuery, asked: Query | None
) -> Event | None:
    """Listens before it reads, so that no message is missed in between."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + query.timeout
    wanted = EventChoice(call.reach, frozenset({inbox_id}), frozenset({MESSAGE_RECEIVED}))
    with closing(call.resources.db.listen(event_log.bell(call.account_id))) as ear:
        while True:
            page = await call.resources.db.read(event_log.list_after, wanted, position, PAGE)
            for event in page.events:
                if matches(event, query) and (
                    asked is None
                    or await call.resources.db.read_long(answers, SECONDS, asked, event.message_id)
                ):
                    return event
            position = page.last_position if page.events else position
            left = ends - loop.time()
            if page.has_more:
                await asyncio.sleep(0)  # a long log without a match must not block others
                continue
            if left <= 0 or await call.is_over():
                return None
            await ear.wait(min(left, 1.0))


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
    message = messages.get(tx, call.reach, message_id)
    return message_json.to_json(tx, [message], call.links())[0]
