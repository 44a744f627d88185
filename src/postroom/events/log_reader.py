"""Reads the event log for readers that missed something: one page at a time, until nothing is missing."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from postroom.accounts.scope import Scope
from postroom.events import event_log
from postroom.events.event_log import Event, EventChoice, EventSlice
from postroom.storage.database import Database

PAGE = 50


class LogReader(Protocol):
    """Someone who gets events from a position in the log on."""

    cursor: int  # the position of the last event that it knows

    @property
    def scope(self) -> Scope: ...

    def wants(self, event: Event) -> bool: ...
    async def catch_up(self, event: Event) -> bool:
        """Sends an event read from the log, waiting for the client. False if it took nothing for too long."""
        ...


async def read_page(db: Database, wanted: EventChoice, position: int) -> EventSlice:
    return await db.read(event_log.list_after, wanted, position, PAGE)


async def send_missed(db: Database, reader: LogReader, newest: Callable[[], int]) -> bool:
    """Send a reader all that it missed; False if it took nothing for too long.

    `newest` is the position up to which others have read. There is no pause between the last look at it and
    the return: a reader that then gets new events as they come misses none. Only one page is in memory,
    however much was missed.
    """
    wanted = EventChoice(reader.scope)
    while reader.cursor < (announced := newest()):
        page = await read_page(db, wanted, reader.cursor)
        for event in page.events:
            if reader.wants(event) and not await reader.catch_up(event):
                return False
            reader.cursor = event.position
        if not page.has_more:
            reader.cursor = max(reader.cursor, announced)  # nothing more up to there is for it
        else:
            await asyncio.sleep(0)  # a long log without a match must not block others
    return True
