"""The stream of /v0: what a client says on it, and events in its words."""

import asyncio
import contextlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.types import Receive

from postroom.accounts import pods
from postroom.accounts.keys import Caller
from postroom.errors import ApiError
from postroom.events import event_log as log
from postroom.events.event_log import Event, EventChoice
from postroom.resources import Resources, Tx
from postroom.web.agentmail import events, names, showing
from postroom.web.streams.stream import Stream
from postroom.web.streams.websocket import FLOOD_REASON, TOO_MANY_MESSAGES, text_frame

PAGE = 100
LOOK_AGAIN_SECONDS = 1.0

Names = Annotated[list[Annotated[str, Meta(max_length=320)]], Meta(max_length=100)]


class Subscribe(Struct, frozen=True):
    type: Literal["subscribe"]
    event_types: Names | None = None
    inbox_ids: Names | None = None
    pod_ids: Names | None = None


class Listening(Struct, frozen=True):
    """What somebody wants to hear of, and behind which event it begins."""

    kinds: frozenset[str]
    inbox_ids: frozenset[str]
    pod_ids: frozenset[str]
    position: int

    def wants(self, event: Event) -> bool:
        is_meant = event.inbox_id in self.inbox_ids or event.pod_id in self.pod_ids
        return is_meant or not (self.inbox_ids or self.pod_ids)


async def listen(resources: Resources, stream: Stream, receive: Receive) -> None:
    """The last subscription is the one that counts."""
    teller: asyncio.Task[None] | None = None
    try:
        while (message := await receive())["type"] != "websocket.disconnect":
            if stream.is_flooding():
                stream.close(TOO_MANY_MESSAGES, FLOOD_REASON)
                return
            wanted = await hear(resources, stream, message.get("text"))
            if wanted is not None:
                await end(teller)
                teller = asyncio.create_task(tell_all(resources, stream, wanted))
    finally:
        await end(teller)


async def end(teller: "asyncio.Task[None] | None") -> None:
    if teller is not None:
        teller.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await teller


async def hear(resources: Resources, stream: Stream, text: str | None) -> Listening | None:
    try:
        asked = msgspec.json.decode(text or "", type=Subscribe)
        wanted = await resources.db.read(subscribe, stream.caller, asked)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, ApiError) as error:
        is_read = isinstance(error, ApiError)
        reason = str(error) if is_read else f"This message could not be read: {str(error)[:200]}"
        await stream.say({"type": "error", "name": "ValidationError", "message": reason})
        return None
    answer = {name: value for name, value in msgspec.to_builtins(asked).items() if value is not None}
    await stream.say({**answer, "type": "subscribed"})
    return wanted


def subscribe(tx: Tx, caller: Caller, asked: Subscribe) -> Listening:
    events.require_known(asked.event_types or [], "event_types")
    usual = [kind for kind in events.KINDS if kind != events.NOT_BY_DEFAULT]
    return Listening(
        kinds=frozenset(asked.event_types or usual),
        inbox_ids=frozenset(names.inbox_ids_of(tx, caller.reach, asked.inbox_ids or [], "inbox_ids")),
        pod_ids=frozenset(pods.get(tx, caller.reach, pod_id).id for pod_id in asked.pod_ids or ()),
        position=log.last_position(tx, caller.account_id),
    )


async def tell_all(resources: Resources, stream: Stream, wanted: Listening) -> None:
    """Listens before it looks, so that no event falls between the two."""
    choice = EventChoice(stream.reach, frozenset(), frozenset(events.ours(sorted(wanted.kinds))))
    position = wanted.position
    with contextlib.closing(resources.db.listen(log.bell(stream.caller.account_id))) as ear:
        while True:
            page = await resources.db.read(log.list_after, choice, position, PAGE)
            for event in page.events:
                if wanted.wants(event) and not await tell(resources, stream, wanted, event):
                    return
            position = page.last_position if page.events else position
            if not page.has_more:
                await ear.wait(LOOK_AGAIN_SECONDS)


async def tell(resources: Resources, stream: Stream, wanted: Listening, event: Event) -> bool:
    """False: the client did not keep up, and is let go."""
    hidden = showing.hidden_from(stream.caller)
    for _, body in await resources.db.read(events.tell, event, wanted.kinds, hidden):
        if not await stream.write(text_frame(body)):
            return False
    return True
