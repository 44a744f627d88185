"""IDLE, and waking sessions when an inbox changes: one reader for all that wait."""

import asyncio
import contextlib

from postroom.events import event_log
from postroom.imap import listing
from postroom.imap.state import ImapState
from postroom.mailbox.folders import views
from postroom.resources import Resources

WAIT_SECONDS = 1.0
RESTS_AS_LONG = 4  # times the duration of a look: it takes a fifth of the loop at most


async def idle(client: ImapState) -> bytes:
    """Reports changes until the client sends DONE, but no faster than the client reads."""
    client.idle_ended.clear()
    while not client.idle_ended.is_set():
        client.wake.clear()
        if client.view is not None:
            await listing.write_changes(client)
        await client.output.drain()
        await _either(client.wake, client.idle_ended)
    return b"OK Done."


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(first.wait()), asyncio.ensure_future(second.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


class InboxWatch:
    """Wakes the sessions of an inbox when its folders have changed: at a bell, or within a second."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._sessions: dict[str, set[ImapState]] = {}
        self._known: dict[str, int] = {}
        self._rung = asyncio.Event()
        self._listeners: dict[str, asyncio.Task[None]] = {}

    def join(self, client: ImapState) -> None:
        caller, inbox_id = client.who
        self._sessions.setdefault(inbox_id, set()).add(client)
        if caller.account_id not in self._listeners:
            self._listeners[caller.account_id] = asyncio.create_task(self._listen(caller.account_id))
        self._rung.set()

    def leave(self, client: ImapState) -> None:
        if client.inbox is None:
            return
        sessions = self._sessions.get(client.inbox.id, set())
        sessions.discard(client)
        if not sessions:
            self._sessions.pop(client.inbox.id, None)
            self._known.pop(client.inbox.id, None)
        account_id = client.inbox.account_id
        if any(other.inbox and other.inbox.account_id == account_id for other in self._all()):
            return
        if (subscription := self._listeners.pop(account_id, None)) is not None:
            subscription.cancel()

    def _all(self) -> list[ImapState]:
        return [client for sessions in self._sessions.values() for client in sessions]

    async def _listen(self, account_id: str) -> None:
        with contextlib.closing(self._resources.db.listen(event_log.bell(account_id))) as subscription:
            while True:
                if await subscription.wait(60.0):
                    self._rung.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._rung.wait()
            self._rung.clear()
            began = loop.time()
            await self._wake_changed()
            await asyncio.sleep(RESTS_AS_LONG * (loop.time() - began))

    async def _wake_changed(self) -> None:
        watched = list(self._sessions)
        if not watched:
            return
        found = await self._resources.db.read(views.modseqs, watched)
        for inbox_id, modseq in found.items():
            if self._known.get(inbox_id) != modseq:
                self._known[inbox_id] = modseq
                for client in self._sessions.get(inbox_id, ()):
                    client.wake.set()

    def close(self) -> None:
        for subscription in self._listeners.values():
            subscription.cancel()
        self._listeners.clear()
