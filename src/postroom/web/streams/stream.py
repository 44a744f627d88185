"""The event stream, /v1/ws: who may open one, and the messages of its clients."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import HTTPConnection
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from postroom import ids, limits, log, value_errors
from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import READING, require_any, require_word
from postroom.accounts.scope import Scope
from postroom.errors import ApiError, BadRequest, Forbidden, InternalError, NotFound
from postroom.events import event_log, kinds
from postroom.events.event_log import Event
from postroom.mailbox import inboxes
from postroom.operations.audit_log import audit_refusal
from postroom.resources import Resources, Tx
from postroom.web.requests.authentication import authenticate, bearer_token, client_address
from postroom.web.requests.request_body import check_scope_filters, require_bounded, require_short_query
from postroom.web.streams.hub import Hub, Hubs, TranslatedEvent
from postroom.web.streams.websocket import (
    BROKEN,
    EXTENSION,
    FLOOD_REASON,
    TOO_MANY_MESSAGES,
    TOO_SLOW,
    StreamProtocol,
    text_frame,
)

PATH = "/v1/ws"
SUBSCRIPTIONS_LIMIT = 100
KEY_WATCH_SECONDS = 0.5
EMPTYING_SECONDS, TURN_SECONDS = 10.0, 0.05

REVOKED, TOO_MANY_CONNECTIONS, GOING_AWAY = 4001, 4008, 1001

Kind = Annotated[str, Meta(max_length=64)]
Listen = Callable[[Resources, Hub, "Stream", Receive], Awaitable[None]]  # for a client of another interface


class ClientMessage(Struct, frozen=True):
    type: Literal["subscribe", "unsubscribe", "ping"]
    inbox_ids: list[str] = []
    event_types: Annotated[list[Kind], Meta(max_length=limits.WEBHOOK_KINDS)] = []
    last_event_id: str | None = None


class Subscription(Struct, frozen=True):
    """Empty sets want everything."""

    inbox_ids: frozenset[str]
    kinds: frozenset[str]

    def wants(self, event: Event) -> bool:
        return (not self.inbox_ids or event.inbox_id in self.inbox_ids) and (
            not self.kinds or event.kind in self.kinds
        )


class Stream:
    """One client. It is live when its hub hands it new events, else it reads the log to catch up."""

    translate = None

    def __init__(self, caller: Caller, protocol: StreamProtocol) -> None:
        self.caller = caller
        self._covers_all = caller.scope.is_account
        self.subscriptions: list[Subscription] = []
        self.cursor = 0
        self.replay: asyncio.Task[None] | None = None
        self._protocol = protocol

    @property
    def scope(self) -> Scope:
        return self.caller.scope

    def is_flooding(self) -> bool:
        return self._protocol.is_flooding()

    def wants(self, event: Event) -> bool:
        if not self._covers_all and not self.caller.scope.covers(
            event.account_id, event.pod_id, event.inbox_id
        ):
            return False
        for subscription in self.subscriptions:  # noqa: SIM110 - any() costs more, and this runs for every frame
            if subscription.wants(event):
                return True
        return False

    def offer(self, event: Event, frame: bytes, translated: list[TranslatedEvent] | None) -> bool:
        """Return False if the client does not keep up. Events that it got from the log are not sent again."""
        if event.position <= self.cursor:
            return True
        if self.wants(event) and not self._protocol.write_frame(frame):
            return False
        self.cursor = event.position
        return True

    async def catch_up(self, event: Event) -> bool:
        return await self.write(text_frame(event.payload))

    async def write(self, frame: bytes) -> bool:
        """Waits for the client. If it took nothing for too long, closes the stream and returns False."""
        if not await self._protocol.wait_until_writable():
            self.close(TOO_SLOW, "too slow: reconnect with last_event_id")
            return False
        self._protocol.write_frame(frame)
        return True

    def write_now(self, frame: bytes) -> bool:
        """Return False, and write nothing, when the client does not keep up."""
        return self._protocol.write_frame(frame)

    async def send_message(self, message: dict[str, Any]) -> None:
        await self.write(text_frame(msgspec.json.encode(message)))

    async def send_error(self, message: str) -> None:
        await self.send_message({"type": "error", "message": message})

    def close(self, code: int, reason: str) -> None:
        self._protocol.close_now(code, reason)


class Streams:
    """Every open stream of this process."""

    def __init__(self, resources: Resources, hubs: Hubs) -> None:
        self._resources = resources
        self.hubs = hubs
        self._open: dict[str, set[Stream]] = {}  # by account
        self._is_emptying = False

    async def serve(
        self, scope: AsgiScope, receive: Receive, send: Send, listen: Listen | None = None
    ) -> None:
        await receive()  # websocket.connect
        request_id = f"req_{ids.trace()}"
        try:
            caller = await self._admit(scope, is_other=listen is not None)
        except ApiError as error:
            await refuse(send, error, request_id)
            return
        except Exception:
            log.get().exception("unexpected error", request_id=request_id, route=PATH)
            fault = InternalError("Something went wrong on our side.", request_id=request_id)
            await refuse(send, fault, request_id)
            return
        await send({"type": "websocket.accept"})
        await self._serve_stream(Stream(caller, scope["extensions"][EXTENSION]["frames"]), receive, listen)

    async def _serve_stream(self, stream: Stream, receive: Receive, listen: Listen | None) -> None:
        if self._is_emptying or self._resources.stopping.is_set():
            stream.close(GOING_AWAY, "the server is stopping")
            return
        account_id = stream.caller.account_id
        of_account = self._open.setdefault(account_id, set())
        if len(of_account) >= limits.STREAMS_OF_AN_ACCOUNT:
            stream.close(TOO_MANY_CONNECTIONS, "too many connections")
            return
        of_account.add(stream)
        hub = self.hubs.add(account_id, stream)
        try:
            if listen is None:
                await self._listen(hub, stream, receive)
            else:
                await listen(self._resources, hub, stream, receive)
        except Exception:
            log.get().exception("a stream failed", account=account_id)
            stream.close(BROKEN, "something went wrong: reconnect with last_event_id")
        finally:
            self._leave(hub, stream)

    async def _admit(self, scope: AsgiScope, is_other: bool) -> Caller:
        if scope["path"] != PATH and not is_other:
            raise NotFound(f"No such path. The event stream is at {PATH}.")
        request = HTTPConnection(scope)
        require_short_query(request)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("api_key" if is_other else "token")
        given = token[0] if token else bearer_token(request)
        resource = keys.V0_RESOURCE if is_other else None
        caller = await authenticate(self._resources, given, resource)
        try:
            require_any(caller.permissions, READING)
            require_word(caller.words, "message_read")
        except Forbidden as error:
            asked = (caller, caller.scope, f"GET {PATH}", error, client_address(request))
            await self._resources.db.write(audit_refusal, *asked, self._resources.now())
            raise
        check_scope_filters(scope["query_string"], None)
        return caller

    def _leave(self, hub: Hub, stream: Stream) -> None:
        self.hubs.remove(hub, stream)
        of_account = self._open.get(hub.account_id, set())
        of_account.discard(stream)
        if not of_account:
            self._open.pop(hub.account_id, None)

    def _all(self) -> list[Stream]:
        return [stream for of_account in self._open.values() for stream in of_account]

    async def _listen(self, hub: Hub, stream: Stream, receive: Receive) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            if stream.is_flooding():
                stream.close(TOO_MANY_MESSAGES, FLOOD_REASON)
                return
            await self._receive(hub, stream, message.get("text"))

    async def _receive(self, hub: Hub, stream: Stream, text: str | None) -> None:
        if text is None:
            await stream.send_error("Send JSON as text, not as a binary frame.")
            return
        try:
            require_bounded(text.encode())
            message = msgspec.json.decode(text, type=ClientMessage)
        except (BadRequest, msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            await stream.send_error(value_errors.unreadable("This message", error, ClientMessage))
            return
        if message.type == "ping":
            await stream.send_message({"type": "pong"})
        elif message.type == "subscribe":
            await self._subscribe(hub, stream, message)
        else:
            named = await self._resources.db.read(inboxes.with_ids, message.inbox_ids)
            await self._unsubscribe(stream, replace(message, inbox_ids=named))

    async def _subscribe(self, hub: Hub, stream: Stream, message: ClientMessage) -> None:
        await hub.wait_until_ready()  # before the echo: events after it are sent
        scope = stream.caller.inbox_id
        named = await self._resources.db.read(inboxes.with_ids, message.inbox_ids)
        asked = frozenset(named) or frozenset({scope} if scope else ())
        if not await self._resources.db.read(are_in_scope, stream.caller, asked):
            await stream.send_error("An inbox id is unknown. Nothing was changed.")
            return
        try:
            kinds.require_known(message.event_types, "event_types")
        except BadRequest as error:
            await stream.send_error(f"{error.message} Nothing was changed.")
            return
        if len(stream.subscriptions) >= SUBSCRIPTIONS_LIMIT:
            await stream.send_error(f"A stream has at most {SUBSCRIPTIONS_LIMIT} subscriptions.")
            return
        subscription = Subscription(asked, frozenset(message.event_types))
        if subscription not in stream.subscriptions:
            stream.subscriptions.append(subscription)
        position = hub.position
        last = await self._resources.db.read(event_log.last_id, stream.caller.scope, position + 1)
        await stream.send_message(
            {
                "type": "subscribed",
                "inbox_ids": shown_inboxes(stream),
                "event_types": shown_kinds(stream),
                "last_event_id": last,
            }
        )
        await self._join(hub, stream, message.last_event_id, position)

    async def _join(self, hub: Hub, stream: Stream, last_event_id: str | None, start: int) -> None:
        """Replays what came after `last_event_id`; without one, continues after `start`."""
        if last_event_id is None:
            if stream.replay is None and hub.position > start and stream not in hub.live:
                hub.start_replay(stream, max(stream.cursor, start))
            elif stream.replay is None:
                hub.join(stream, start)
            return
        caller = stream.caller
        try:
            position = await self._resources.db.read(event_log.position_of, caller.scope, last_event_id)
        except NotFound:
            await stream.send_error("last_event_id is unknown. New events will come.")
            await self._join(hub, stream, None, start)
            return
        hub.start_replay(stream, position)

    async def _unsubscribe(self, stream: Stream, message: ClientMessage) -> None:
        gone = frozenset(message.inbox_ids)
        if gone and any(not subscription.inbox_ids for subscription in stream.subscriptions):
            await stream.send_error(
                "This stream is subscribed to all inboxes. Unsubscribe without ids ends it."
            )
            return
        known: frozenset[str] = frozenset().union(*(each.inbox_ids for each in stream.subscriptions))
        if not await self._resources.db.read(are_in_scope, stream.caller, gone - known):
            await stream.send_error("An inbox id is unknown. Nothing was changed.")
            return
        stream.subscriptions = (
            [
                Subscription(subscription.inbox_ids - gone, subscription.kinds)
                for subscription in stream.subscriptions
                if subscription.inbox_ids - gone
            ]
            if gone
            else []
        )
        await stream.send_message({"type": "unsubscribed", "inbox_ids": message.inbox_ids})

    async def watch_keys(self) -> None:
        """Runs until cancelled: if a key ends or may no longer read, its streams close within a second."""
        while True:
            await asyncio.sleep(KEY_WATCH_SECONDS)
            if self._open:
                await self._close_revoked(self._all())

    async def _close_revoked(self, streams: list[Stream]) -> None:
        asked = sorted({stream.caller.key_id for stream in streams})
        readers = await self._resources.db.read(keys.find_allowed, asked, READING, self._resources.now())
        for stream in streams:
            if stream.caller.key_id not in readers:
                stream.close(REVOKED, "the key was revoked, or may read no more")

    def count(self) -> int:
        return sum(len(of_account) for of_account in self._open.values())

    async def empty(self) -> None:
        """Closes a few at a time, so that clients do not all connect to the next node at once."""
        self._is_emptying = True
        streams = self._all()
        turns = min(len(streams), round(EMPTYING_SECONDS / TURN_SECONDS))
        for turn in range(turns):
            for stream in streams[turn::turns]:
                stream.close(GOING_AWAY, "the server is stopping")
            await asyncio.sleep(TURN_SECONDS)

    async def close(self) -> None:
        for stream in self._all():
            stream.close(GOING_AWAY, "the server is stopping")
        self.hubs.close()


def are_in_scope(tx: Tx, caller: Caller, inbox_ids: frozenset[str]) -> bool:
    return inboxes.are_within(tx, caller.scope, inbox_ids)


def shown_inboxes(stream: Stream) -> list[str]:
    sets = [subscription.inbox_ids for subscription in stream.subscriptions]
    return sorted(frozenset().union(*sets)) if all(sets) else []


def shown_kinds(stream: Stream) -> list[str]:
    sets = [subscription.kinds for subscription in stream.subscriptions]
    return sorted(frozenset().union(*sets)) if all(sets) else []


async def refuse(send: Send, error: ApiError, request_id: str) -> None:
    """Refuses the upgrade with the same JSON error as any other path."""
    headers = [(b"content-type", b"application/json"), (b"x-request-id", request_id.encode())]
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": msgspec.json.encode(error.to_json())})
