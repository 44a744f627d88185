"""One hub an account: it reads new events once and hands each to every stream. A stream that falls behind
reads the log by itself, and one that takes nothing is closed."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from postroom import log
from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.events import events
from postroom.events.events import Event, EventChoice, EventSlice
from postroom.processes.loop_supervisor import ACCOUNT_MARK
from postroom.resources import Resources
from postroom.web.streams.websocket import BROKEN, TOO_SLOW, StreamProtocol, text_frame

PAGE = 50
RETRY_SECONDS = 1.0
WRITES_PER_TURN = 1000


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
        self._reaches_all = caller.reach.is_account
        self.subscriptions: list[Subscription] = []
        self.cursor = 0
        self.replay: asyncio.Task[None] | None = None
        self._protocol = protocol

    def is_flooding(self) -> bool:
        return self._protocol.is_flooding()

    def wants(self, event: Event) -> bool:
        if not self._reaches_all and not self.caller.reach.covers(
            event.account_id, event.pod_id, event.inbox_id
        ):
            return False
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
        self._reading = f"events of a stream{ACCOUNT_MARK}{account_id}"
        self._pumping = f"stream{ACCOUNT_MARK}{account_id}"
        self._pump = asyncio.create_task(resources.loops.supervise(self._pumping, self._run))

    async def wait_until_ready(self) -> None:
        await self._ready.wait()

    def leave(self, stream: Stream) -> None:
        self.streams.discard(stream)
        self.live.discard(stream)
        if stream.replay is not None:
            stream.replay.cancel()

    def stop(self) -> None:
        self._pump.cancel()
        for name in (self._reading, self._pumping):
            self._resources.loops.forget(name)

    async def _run(self) -> None:
        ear = self._resources.db.listen(events.bell(self._account_id))
        try:
            await self._find_position()
            while True:
                page = await self._read_page()
                await self._hand_out_all(page.events)
                if not page.has_more:
                    await ear.wait(RETRY_SECONDS)
        finally:
            ear.close()

    async def _find_position(self) -> None:
        while not self._ready.is_set():
            try:
                self.position = await self._resources.db.read(events.last_position, self._account_id)
                self._ready.set()
            except Exception as error:
                self._resources.loops.failed(self._reading, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _read_page(self) -> EventSlice:
        wanted = EventChoice(Reach(self._account_id))
        try:
            page = await self._resources.db.read(events.list_after, wanted, self.position, PAGE)
        except Exception as error:
            self._resources.loops.failed(self._reading, error)
            return EventSlice([], has_more=False)
        self._resources.loops.works(self._reading)
        return page

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
        except Exception:
            log.get().exception("cannot replay events", account=self._account_id)
            stream.close(BROKEN, "something went wrong: reconnect with last_event_id")
            return
        if has_caught_up:
            stream.replay = None
            self.live.add(stream)

    async def _send_missed(self, stream: Stream) -> bool:
        """A cursor over the table: however much was missed, one page is in memory."""
        wanted = EventChoice(stream.caller.reach)
        while stream.cursor < self.position:
            announced = self.position
            page = await self._resources.db.read(events.list_after, wanted, stream.cursor, PAGE)
            for event in page.events:
                if stream.wants(event) and not await stream.write(text_frame(event.payload)):
                    return False
                stream.cursor = event.position
            if not page.has_more:
                stream.cursor = max(stream.cursor, announced)  # up to there nothing more is for this key
            else:
                await asyncio.sleep(0)  # a long log of which nothing is wanted holds up nobody
        return True
