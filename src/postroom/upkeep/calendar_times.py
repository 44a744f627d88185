"""Calendars as time passes: an event starts or ends, its email has left, a series needs more of its spans.

Each is a change and its event in one transaction, so that a server that is killed announces it once.
"""

from contextlib import closing

from msgspec.structs import replace

from postroom.events import kinds
from postroom.events.calendar_notices import emit
from postroom.mailbox import holds, inbox_calendars
from postroom.mailbox.calendars import calendar_events, spans
from postroom.mailbox.calendars.calendar_events import CANCELLED, CalendarEvent
from postroom.mailbox.calendars.spans import DueSpan
from postroom.mailbox.holds import CANCELLED as CALLED_OFF
from postroom.mailbox.holds import EXPIRED, REJECTED
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.storage.database import Tx

TOGETHER = 50
UNSENT = frozenset({REJECTED, EXPIRED, CALLED_OFF})
BELL = "calendars"


async def watch_calendars(resources: Resources) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(BELL)) as subscription:
        while True:
            is_any_due = await resources.db.read(is_work_due, resources.now())
            done = await resources.db.write(step, resources.now()) if is_any_due else 0
            resources.loops.works("calendars")
            if done < TOGETHER:
                await subscription.wait(IDLE_SECONDS)


def is_work_due(tx: Tx, now: int) -> bool:
    return bool(
        spans.list_due(tx, now, 1)
        or calendar_events.list_settled(tx, 1)
        or calendar_events.list_due(tx, now, 1)
    )


def step(tx: Tx, now: int) -> int:
    """Returns how much was done."""
    settled = calendar_events.list_settled(tx, TOGETHER)
    for event in settled:
        settle(tx, event, now)
    due = spans.list_due(tx, now, TOGETHER)
    for span in due:
        announce(tx, span, now)
    stale = calendar_events.list_due(tx, now, TOGETHER // 10)
    for event in stale:
        calendar = inbox_calendars.find(tx, event.calendar_id)
        if calendar is not None:
            calendar_events.put_spans(tx, calendar, event, calendar_events.list_reserved(tx, event.id), now)
    return max(len(settled), len(due), len(stale) * 10)


def announce(tx: Tx, due: DueSpan, now: int) -> None:
    """Announce what is still true, after the server was away: an event that is over has ended."""
    is_over = due.tell_at >= due.span.ends_at or now >= due.span.ends_at
    spans.set_next_notice(tx, due, None if is_over else due.span.ends_at)
    event, calendar = calendar_events.find(tx, due.span.event_id), inbox_calendars.find(tx, due.calendar_id)
    if event is None or calendar is None:
        return
    kind = kinds.CALENDAR_ENDED if is_over else kinds.CALENDAR_STARTING
    emit(tx, kind, calendar, event, now, span=due.span)


def settle(tx: Tx, event: CalendarEvent, now: int) -> None:
    """Settle an event whose email about a change has left, or never will: then it is as before."""
    calendar = inbox_calendars.find(tx, event.calendar_id)
    if calendar is None:
        return
    hold = holds.find(tx, event.waits_for or "")
    is_undone = hold is not None and hold.state in UNSENT
    after = replace(event, waits_for=None, before=None)
    if is_undone:
        after = undone(after, event)
    after = calendar_events.put(tx, calendar, after, calendar_events.list_reserved(tx, event.id), now, False)
    if is_undone:
        kind = kinds.CALENDAR_CANCELLED if after.status == CANCELLED else kinds.CALENDAR_CHANGED
        emit(tx, kind, calendar, after, now)
    elif event.status != CANCELLED:
        emit(tx, kinds.CALENDAR_CHANGED, calendar, after, now)


def undone(after: CalendarEvent, event: CalendarEvent) -> CalendarEvent:
    if event.before is None:
        off = replace(event.series, part=replace(event.series.part, status=CANCELLED))
        return replace(after, series=off, status=CANCELLED)
    return replace(after, series=event.before, status=event.before.part.status)
