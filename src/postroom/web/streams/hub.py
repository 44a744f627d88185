"""One hub per account: reads new events once and hands each to every listener in this process.

A listener that falls behind reads the log at its own pace until it has caught up.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Protocol

from msgspec import Struct

from postroom import log, traces
from postroom.accounts.scope import Scope
from postroom.events import event_log
from postroom.events.event_log import Event, EventChoice, EventSlice
from postroom.events.log_reader import LogReader, read_page, send_missed
from postroom.events.payload import traceparent_of
from postroom.processes.loop_supervisor import ACCOUNT_MARK
from postroom.resources import Resources, Tx
from postroom.tracing import PRODUCER, Attributes
from postroom.web.streams.websocket import BROKEN, text_frame

RETRY_SECONDS = 1.0
WRITES_PER_TURN = 1000


class TranslatedEvent(Struct, frozen=True):
    """An event in the format of another interface, which may have several kinds for it."""

    event_id: str
    kind: str
    labels: list[str]  # of its message
    body: bytes


class Listener(LogReader, Protocol):
    """A stream of a client, or an open page. It is live when its hub hands it new events."""

    replay: asyncio.Task[None] | None

    @property
    def translate(self) -> Callable[[Tx, Event], list[TranslatedEvent]] | None:
        """Set for listeners of another interface: translates an event, once for all of them."""
        ...

    def offer(self, event: Event, frame: bytes, translated: list[TranslatedEvent] | None) -> bool:
        """Return False if it does not keep up. Events that it knows already are not sent again."""
        ...

    def close(self, code: int, reason: str) -> None: ...


class Hub:
    """All listeners of one account in this process."""

    def __init__(self, resources: Resources, account_id: str) -> None:
        self.account_id = account_id
        self.position = 0
        self.listeners: set[Listener] = set()
        self.live: set[Listener] = set()
        self._resources = resources
        self._ready = asyncio.Event()
        self._reading = f"events of a stream{ACCOUNT_MARK}{account_id}"
        self._pumping = f"stream{ACCOUNT_MARK}{account_id}"
        self._pump = resources.loops.supervise(self._pumping, self._run)

    async def wait_until_ready(self) -> None:
        await self._ready.wait()

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        self.live.discard(listener)
        if listener.replay is not None:
            listener.replay.cancel()

    def stop(self) -> None:
        self._pump.cancel()
        for name in (self._reading, self._pumping):
            self._resources.loops.forget(name)

    async def _run(self) -> None:
        with closing(self._resources.db.listen(event_log.bell(self.account_id))) as subscription:
            await self._find_position()
            while True:
                page = await self._read_page()
                await self._hand_out_all(page.events)
                if not page.has_more:
                    await subscription.wait(RETRY_SECONDS)

    async def _find_position(self) -> None:
        while not self._ready.is_set():
            try:
                self.position = await self._resources.db.read(event_log.last_position, self.account_id)
                self._ready.set()
            except Exception as error:
                self._resources.loops.failed(self._reading, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _read_page(self) -> EventSlice:
        wanted = EventChoice(Scope(self.account_id))
        try:
            page = await read_page(self._resources.db, wanted, self.position)
        except Exception as error:
            self._resources.loops.failed(self._reading, error)
            return EventSlice([], has_more=False)
        self._resources.loops.works(self._reading)
        return page

    async def _hand_out_all(self, page: list[Event]) -> None:
        """Hand out several events per turn of the loop.

        All that is written to a client in one turn is one system call.
        """
        writes = 0
        for event in page:
            self._hand_out(event, await self._translate(event))
            writes += 1 + len(self.live)
            if writes >= WRITES_PER_TURN:
                writes = 0
                await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _translate(self, event: Event) -> list[TranslatedEvent] | None:
        """Render an event for listeners of another interface.

        None: those that want it read it from the log later.
        """
        wanted_by = (each for each in self.live if each.translate is not None and each.wants(event))
        first = next(wanted_by, None)
        if first is None or first.translate is None:
            return None
        try:
            return await self._resources.db.read(first.translate, event)
        except Exception as error:
            self._resources.loops.failed(self._reading, error)
            return None

    def _hand_out(self, event: Event, translated: list[TranslatedEvent] | None) -> None:
        """Hand out an event.

        No pause between position and listeners: one that joins meanwhile misses and repeats nothing.
        """
        frame = text_frame(event.payload)
        self._record_span(event)
        self.position = event.position
        for listener in [each for each in self.live if not each.offer(event, frame, translated)]:
            self.start_replay(listener, listener.cursor)

    def _record_span(self, event: Event) -> None:
        """Streams that are live get a traced event at once."""
        tracing, parent = self._resources.tracing, None
        if tracing is not None and self.live:
            parent = traces.read(traceparent_of(event.payload))
        if tracing is not None and parent is not None:
            now = self._resources.now()
            attributes: Attributes = {"messaging.operation.name": "stream", "postroom.event": event.kind}
            tracing.record(
                "stream event", PRODUCER, parent[0], event.created_at, now, attributes, parent_id=parent[1]
            )

    def join(self, listener: Listener, position: int) -> None:
        """Add a listener. It gets all events after that position, which is the newest."""
        listener.cursor = max(listener.cursor, position)
        self.live.add(listener)

    def start_replay(self, listener: Listener, position: int) -> None:
        """Let a listener read the log at its own pace, until it has caught up."""
        self.live.discard(listener)
        if listener.replay is not None:
            listener.replay.cancel()
        listener.cursor = position
        listener.replay = asyncio.create_task(self._replay(listener))

    async def _replay(self, listener: Listener) -> None:
        """Replay the log. No pause between the last page and going live: no event is lost in between."""
        try:
            has_caught_up = await send_missed(self._resources.db, listener, lambda: self.position)
        except Exception:
            log.get().exception("cannot replay events", account=self.account_id)
            listener.close(BROKEN, "something went wrong: reconnect with last_event_id")
            return
        if has_caught_up:
            listener.replay = None
            self.live.add(listener)


class Hubs:
    """One hub for each account with listeners in this process."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._hubs: dict[str, Hub] = {}

    def add(self, account_id: str, listener: Listener) -> Hub:
        hub = self._hubs.get(account_id)
        if hub is None:
            hub = self._hubs[account_id] = Hub(self._resources, account_id)
        hub.listeners.add(listener)
        return hub

    def remove(self, hub: Hub, listener: Listener) -> None:
        hub.leave(listener)
        if not hub.listeners and self._hubs.pop(hub.account_id, None) is not None:
            hub.stop()

    def close(self) -> None:
        for hub in self._hubs.values():
            hub.stop()
        self._hubs.clear()
