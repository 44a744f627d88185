"""The event stream, /v1/ws. One hub an account reads its new events once and hands them to every stream;
a stream that falls behind reads the log by itself, and one that takes nothing is closed."""

import asyncio
from collections import deque
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import msgspec
from msgspec import Meta, Struct
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from postroom import ids, log
from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.errors import ApiError, InternalError, NotFound
from postroom.events import events
from postroom.events.events import Event, Filter
from postroom.mailbox import inboxes
from postroom.resources import Resources, Tx
from postroom.web.auth import authenticate, bearer_token
from postroom.web.frames import BROKEN, EXTENSION, TOO_SLOW, StreamProtocol, text_frame

PATH = "/v1/ws"
CONNECTIONS_PER_ACCOUNT = 100
MESSAGES_PER_WINDOW = 30
WINDOW_SECONDS = 10.0
SUBSCRIPTIONS_LIMIT = 100
PAGE = 50
KEY_WATCH_SECONDS = 0.5
RETRY_SECONDS = 1.0
WRITES_PER_TURN = 1000

REVOKED, TOO_MANY_CONNECTIONS, TOO_MANY_MESSAGES, GOING_AWAY = 4001, 4008, 4029, 1001

Kind = Annotated[str, Meta(max_length=64)]


class ClientMessage(Struct, frozen=True):
    type: Literal["subscribe", "unsubscribe", "ping"]
    inbox_ids: list[str] = []
    event_types: Annotated[list[Kind], Meta(max_length=20)] = []
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

    def __init__(self, caller: Caller, protocol: StreamProtocol) -> None:
        self.caller = caller
        self.subscriptions: list[Subscription] = []
        self.cursor = 0
        self.replay: asyncio.Task[None] | None = None
        self._protocol = protocol
        self._heard_at: deque[float] = deque(maxlen=MESSAGES_PER_WINDOW)

    def is_flooding(self, now: float) -> bool:
        is_full = len(self._heard_at) == MESSAGES_PER_WINDOW
        is_early = is_full and now - self._heard_at[0] < WINDOW_SECONDS
        self._heard_at.append(now)
        return is_early

    def wants(self, event: Event) -> bool:
        for subscription in self.subscriptions:  # noqa: SIM110 - any() costs more, and this runs for every frame
            if subscription.wants(event):
                return True
        return False

    def offer(self, event: Event, frame: bytes) -> bool:
        """False when the client does not keep up. What it read from the log before is not sent again."""
        if event.position <= self.cursor:
            return True
        if self.wants(event) and not self._protocol.write_frame(frame):
            return False
        self.cursor = event.position
        return True

    async def write(self, frame: bytes) -> bool:
        """Waits for the client. False when it took nothing for too long, and is let go."""
        if not await self._protocol.wait_until_writable():
            self.close(TOO_SLOW, "too slow: reconnect with last_event_id")
            return False
        self._protocol.write_frame(frame)
        return True

    async def say(self, message: dict[str, Any]) -> None:
        await self.write(text_frame(msgspec.json.encode(message)))

    async def say_error(self, message: str) -> None:
        await self.say({"type": "error", "message": message})

    def close(self, code: int, reason: str) -> None:
        self._protocol.close_now(code, reason)


class Hub:
    """All streams of one account in this process."""

    def __init__(self, resources: Resources, account_id: str) -> None:
        self.position = 0
        self.streams: set[Stream] = set()
        self.live: set[Stream] = set()
        self._resources = resources
        self._account_id = account_id
        self._ready = asyncio.Event()
        self._pump = asyncio.create_task(self._run())

    async def wait_until_ready(self) -> None:
        await self._ready.wait()

    def leave(self, stream: Stream) -> None:
        self.streams.discard(stream)
        self.live.discard(stream)
        if stream.replay is not None:
            stream.replay.cancel()

    def stop(self) -> None:
        self._pump.cancel()

    async def _run(self) -> None:
        ear = self._resources.db.listen(events.bell(self._account_id))
        try:
            await self._find_position()
            while True:
                page = await self._read_page()
                await self._hand_out_all(page)
                if len(page) < PAGE:
                    await ear.wait(RETRY_SECONDS)
        finally:
            ear.close()

    async def _find_position(self) -> None:
        while not self._ready.is_set():
            try:
                self.position = await self._resources.db.read(events.last_position, self._account_id)
                self._ready.set()
            except Exception as error:
                log.get().error("cannot read events", account=self._account_id, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _read_page(self) -> list[Event]:
        wanted = Filter(self._account_id)
        try:
            return await self._resources.db.read(events.list_after, wanted, self.position, PAGE)
        except Exception as error:
            log.get().error("cannot read events", account=self._account_id, reason=str(error))
            return []

    async def _hand_out_all(self, page: list[Event]) -> None:
        """Several at a turn: what is written to a client in one turn leaves in one call to the system."""
        writes = 0
        for event in page:
            self._hand_out(event)
            writes += 1 + len(self.live)
            if writes >= WRITES_PER_TURN:
                writes = 0
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _hand_out(self, event: Event) -> None:
        """Without a pause between position and streams: who joins in between misses and repeats nothing."""
        frame = text_frame(event.payload)
        self.position = event.position
        for stream in [stream for stream in self.live if not stream.offer(event, frame)]:
            self.start_replay(stream, stream.cursor)

    def start_replay(self, stream: Stream, position: int) -> None:
        """From now on the stream reads the log at its own pace, until it has caught up."""
        self.live.discard(stream)
        if stream.replay is not None:
            stream.replay.cancel()
        stream.cursor = position
        stream.replay = asyncio.create_task(self._replay(stream))

    async def _replay(self, stream: Stream) -> None:
        """Without a pause between the last page and going live: nothing falls between the two."""
        try:
            has_caught_up = await self._send_missed(stream)
        except Exception as error:
            log.get().error("cannot replay events", account=self._account_id, reason=str(error))
            stream.close(BROKEN, "something went wrong: reconnect with last_event_id")
            return
        if has_caught_up:
            stream.replay = None
            self.live.add(stream)

    async def _send_missed(self, stream: Stream) -> bool:
        """A cursor over the table: however much was missed, one page is in memory."""
        scope = stream.caller.inbox_id
        wanted = Filter(self._account_id, frozenset({scope} if scope else ()))
        while stream.cursor < self.position:
            announced = self.position
            page = await self._resources.db.read(events.list_after, wanted, stream.cursor, PAGE)
            for event in page:
                if stream.wants(event) and not await stream.write(text_frame(event.payload)):
                    return False
                stream.cursor = event.position
            if len(page) < PAGE:
                stream.cursor = max(stream.cursor, announced)  # up to there nothing more is for this key
            else:
                await asyncio.sleep(0)  # a long log of which nothing is wanted holds up nobody
        return True


class Streams:
    """Every open stream of this process."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._hubs: dict[str, Hub] = {}

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        request_id = f"req_{ids.trace()}"
        try:
            caller = await self._admit(scope)
        except ApiError as error:
            await refuse(send, error, request_id)
            return
        except Exception:
            log.get().exception("unexpected error", request_id=request_id, route=PATH)
            fault = InternalError("Something went wrong on our side.", request_id=request_id)
            await refuse(send, fault, request_id)
            return
        await send({"type": "websocket.accept"})
        await self._serve_stream(Stream(caller, scope["extensions"][EXTENSION]["frames"]), receive)

    async def _serve_stream(self, stream: Stream, receive: Receive) -> None:
        if self._resources.stopping.is_set():
            stream.close(GOING_AWAY, "the server is stopping")
            return
        account_id = stream.caller.account_id
        hub = self._hubs.get(account_id) or self._open_hub(account_id)
        if len(hub.streams) >= CONNECTIONS_PER_ACCOUNT:
            stream.close(TOO_MANY_CONNECTIONS, "too many connections")
            return
        hub.streams.add(stream)
        try:
            await self._listen(hub, stream, receive)
        except Exception as error:
            log.get().error("a stream failed", account=account_id, reason=str(error))
            stream.close(BROKEN, "something went wrong: reconnect with last_event_id")
        finally:
            self._leave(hub, stream)

    async def _admit(self, scope: Scope) -> Caller:
        if scope["path"] != PATH:
            raise NotFound(f"No such path. The event stream is at {PATH}.")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        return await authenticate(self._resources, token[0] if token else bearer_token(HTTPConnection(scope)))

    def _open_hub(self, account_id: str) -> Hub:
        hub = self._hubs[account_id] = Hub(self._resources, account_id)
        return hub

    def _leave(self, hub: Hub, stream: Stream) -> None:
        hub.leave(stream)
        if not hub.streams and self._hubs.pop(stream.caller.account_id, None) is not None:
            hub.stop()

    async def _listen(self, hub: Hub, stream: Stream, receive: Receive) -> None:
        loop = asyncio.get_running_loop()
        while (message := await receive())["type"] != "websocket.disconnect":
            if stream.is_flooding(loop.time()):
                stream.close(TOO_MANY_MESSAGES, "more than 30 messages in 10 seconds")
                return
            await self._hear(hub, stream, message.get("text"))

    async def _hear(self, hub: Hub, stream: Stream, text: str | None) -> None:
        if text is None:
            await stream.say_error("Send JSON as text, not as a binary frame.")
            return
        try:
            message = msgspec.json.decode(text, type=ClientMessage)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            await stream.say_error(f"This message could not be read: {str(error)[:200]}")
            return
        if message.type == "ping":
            await stream.say({"type": "pong"})
        elif message.type == "subscribe":
            await self._subscribe(hub, stream, message)
        else:
            await self._unsubscribe(stream, message)

    async def _subscribe(self, hub: Hub, stream: Stream, message: ClientMessage) -> None:
        await hub.wait_until_ready()  # before the echo: what comes after it is heard
        scope = stream.caller.inbox_id
        asked = frozenset(message.inbox_ids) or frozenset({scope} if scope else ())
        if not await self._resources.db.read(are_reachable, stream.caller, asked):
            await stream.say_error("An inbox id is unknown. Nothing was changed.")
            return
        if len(stream.subscriptions) >= SUBSCRIPTIONS_LIMIT:
            await stream.say_error(f"A stream has at most {SUBSCRIPTIONS_LIMIT} subscriptions.")
            return
        subscription = Subscription(asked, frozenset(message.event_types))
        if subscription not in stream.subscriptions:
            stream.subscriptions.append(subscription)
        await stream.say(
            {"type": "subscribed", "inbox_ids": shown_inboxes(stream), "event_types": shown_kinds(stream)}
        )
        await self._join(hub, stream, message.last_event_id)

    async def _join(self, hub: Hub, stream: Stream, last_event_id: str | None) -> None:
        """At once, or after what came behind `last_event_id` was sent."""
        if last_event_id is None:
            if stream.replay is None:
                stream.cursor = max(stream.cursor, hub.position)
                hub.live.add(stream)
            return
        caller = stream.caller
        try:
            position = await self._resources.db.read(
                events.position_of, caller.account_id, caller.inbox_id, last_event_id
            )
        except NotFound:
            await stream.say_error("last_event_id is unknown. New events will come.")
            await self._join(hub, stream, None)
            return
        hub.start_replay(stream, position)

    async def _unsubscribe(self, stream: Stream, message: ClientMessage) -> None:
        gone = frozenset(message.inbox_ids)
        if gone and any(not subscription.inbox_ids for subscription in stream.subscriptions):
            await stream.say_error(
                "This stream is subscribed to all inboxes. Unsubscribe without ids ends it."
            )
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
        await stream.say({"type": "unsubscribed", "inbox_ids": message.inbox_ids})

    async def watch_keys(self) -> None:
        """Runs until cancelled: a revoked key closes its streams within a second."""
        while True:
            await asyncio.sleep(KEY_WATCH_SECONDS)
            streams = [stream for hub in self._hubs.values() for stream in hub.streams]
            try:
                valid = await self._resources.db.read(
                    keys.find_valid, sorted({stream.caller.key_id for stream in streams})
                )
            except Exception as error:
                log.get().error("cannot look at keys", reason=str(error))
                continue
            for stream in streams:
                if stream.caller.key_id not in valid:
                    stream.close(REVOKED, "the key was revoked")

    async def close(self) -> None:
        for hub in list(self._hubs.values()):
            for stream in list(hub.streams):
                stream.close(GOING_AWAY, "the server is stopping")
            hub.stop()


def are_reachable(tx: Tx, caller: Caller, inbox_ids: frozenset[str]) -> bool:
    if caller.inbox_id is not None:
        return inbox_ids == {caller.inbox_id}
    return inboxes.count_owned(tx, caller.account_id, sorted(inbox_ids)) == len(inbox_ids)


def shown_inboxes(stream: Stream) -> list[str]:
    sets = [subscription.inbox_ids for subscription in stream.subscriptions]
    return sorted(frozenset().union(*sets)) if all(sets) else []


def shown_kinds(stream: Stream) -> list[str]:
    sets = [subscription.kinds for subscription in stream.subscriptions]
    return sorted(frozenset().union(*sets)) if all(sets) else []


async def refuse(send: Send, error: ApiError, request_id: str) -> None:
    """The upgrade is refused with the JSON error of every other path."""
    headers = [(b"content-type", b"application/json"), (b"x-request-id", request_id.encode())]
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": msgspec.json.encode(error.to_json())})
