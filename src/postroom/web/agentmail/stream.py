"""The stream of /v0: its client messages, and its events."""

import asyncio
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.types import Receive

from postroom import value_errors
from postroom.accounts import pods
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import ApiError
from postroom.events import event_log as log
from postroom.events.event_log import Event
from postroom.limits import ADDRESS_CHARACTERS
from postroom.resources import Resources, Tx
from postroom.web.agentmail import events, names, showing
from postroom.web.requests.request_body import require_bounded
from postroom.web.streams.hub import Hub, TranslatedEvent
from postroom.web.streams.stream import Stream
from postroom.web.streams.websocket import FLOOD_REASON, TOO_MANY_MESSAGES, text_frame

Names = Annotated[list[Annotated[str, Meta(max_length=ADDRESS_CHARACTERS)]], Meta(max_length=100)]


class Subscribe(Struct, frozen=True):
    type: Literal["subscribe"]
    event_types: Names | None = None
    inbox_ids: Names | None = None
    pod_ids: Names | None = None


class Listening(Struct, frozen=True):
    """The wanted events, and after which event they begin."""

    kinds: frozenset[str]
    inbox_ids: frozenset[str]
    pod_ids: frozenset[str]
    position: int

    def wants(self, event: Event) -> bool:
        is_meant = event.inbox_id in self.inbox_ids or event.pod_id in self.pod_ids
        return is_meant or not (self.inbox_ids or self.pod_ids)


class Subscriber:
    """A client by its subscription, as a listener of the hub of its account."""

    def __init__(self, resources: Resources, stream: Stream, wanted: Listening) -> None:
        self.cursor = wanted.position
        self.replay: asyncio.Task[None] | None = None
        self.translate = events.render
        self._resources = resources
        self._stream = stream
        self._wanted = wanted
        self._kinds = frozenset(events.ours(sorted(wanted.kinds)))
        self._hidden = showing.hidden_from(stream.caller)

    @property
    def scope(self) -> Scope:
        return self._stream.scope

    def wants(self, event: Event) -> bool:
        is_within = self.scope.covers(event.account_id, event.pod_id, event.inbox_id)
        return is_within and event.kind in self._kinds and self._wanted.wants(event)

    def offer(self, event: Event, frame: bytes, translated: list[TranslatedEvent] | None) -> bool:
        if event.position <= self.cursor:
            return True
        if self.wants(event) and (translated is None or not self._stream.write_now(self._chosen(translated))):
            return False
        self.cursor = event.position
        return True

    async def catch_up(self, event: Event) -> bool:
        return await self._stream.write(self._chosen(await self._resources.db.read(events.render, event)))

    def close(self, code: int, reason: str) -> None:
        self._stream.close(code, reason)

    def _chosen(self, translated: list[TranslatedEvent]) -> bytes:
        """Return all that it may see and wants in one piece, so that all or nothing of it is written."""
        return b"".join(
            text_frame(each.body)
            for each in translated
            if each.kind in self._wanted.kinds and self._hidden.isdisjoint(each.labels)
        )


async def listen(resources: Resources, hub: Hub, stream: Stream, receive: Receive) -> None:
    """Listen to the client. Only its last subscription counts."""
    subscriber: Subscriber | None = None
    try:
        while (message := await receive())["type"] != "websocket.disconnect":
            if stream.is_flooding():
                stream.close(TOO_MANY_MESSAGES, FLOOD_REASON)
                return
            await hub.wait_until_ready()  # before the position is read: later events are sent
            wanted = await read_subscription(resources, stream, message.get("text"))
            if wanted is not None:
                leave(hub, subscriber)
                subscriber = Subscriber(resources, stream, wanted)
                hub.start_replay(subscriber, wanted.position)
    finally:
        leave(hub, subscriber)


def leave(hub: Hub, subscriber: Subscriber | None) -> None:
    if subscriber is not None:
        hub.leave(subscriber)


async def read_subscription(resources: Resources, stream: Stream, text: str | None) -> Listening | None:
    try:
        require_bounded((text or "").encode())
        asked = msgspec.json.decode(text or "", type=Subscribe)
        wanted = await resources.db.read(subscribe, stream.caller, asked)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, ApiError) as error:
        is_read = isinstance(error, ApiError)
        reason = str(error) if is_read else value_errors.unreadable("This message", error, Subscribe)
        await stream.send_message({"type": "error", "name": "ValidationError", "message": reason})
        return None
    answer = {name: value for name, value in msgspec.to_builtins(asked).items() if value is not None}
    await stream.send_message({**answer, "type": "subscribed"})
    return wanted


def subscribe(tx: Tx, caller: Caller, asked: Subscribe) -> Listening:
    events.require_known(asked.event_types or [], "event_types")
    usual = [kind for kind in events.KINDS if kind not in events.NOT_BY_DEFAULT]
    return Listening(
        kinds=frozenset(asked.event_types or usual),
        inbox_ids=frozenset(names.inbox_ids_of(tx, caller.scope, asked.inbox_ids or [], "inbox_ids")),
        pod_ids=frozenset(pods.get(tx, caller.scope, pod_id).id for pod_id in asked.pod_ids or ()),
        position=log.last_position(tx, caller.account_id),
    )
