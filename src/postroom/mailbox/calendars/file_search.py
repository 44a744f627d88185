"""Events of a calendar that take place in any time, however long: as CalDAV asks for them."""

from collections.abc import Sequence

from postroom.mailbox.calendars import spans
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.storage.database import Tx
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.reading.series import occurrences

SERIES = 2_000
STEPS_OF_A_SEARCH = 200_000


def list_ids_within(tx: Tx, calendar: InboxCalendar, since: int, until: int, limit: int) -> list[str]:
    """List the ids of the events: those stored by their times, then series that continue beyond."""
    rows = tx.tuples(
        "select distinct event_id from calendar_spans where calendar_id = :id and starts_at < :until"
        " and (ends_at > :since or starts_at >= :since) limit :limit",
        id=calendar.id,
        since=since,
        until=until,
        limit=limit,
    )
    found = dict.fromkeys(str(row[0]) for row in rows)
    steps = StepBudget(STEPS_OF_A_SEARCH)
    for row in spans.list_partly_stored(tx, calendar.id, since, until, SERIES):
        if row["id"] in found:
            continue
        event = CalendarEvent.from_row(row)
        takes_place = occurrences(event.series, since, until, 1, calendar.time_zone, steps)
        if takes_place or steps.left < 0:  # a search that is cut short finds rather too much
            found[event.id] = None
    return list(found)[:limit]


def list_shown(tx: Tx, calendar_id: str, limit: int) -> Sequence[CalendarEvent]:
    rows = tx.all(
        "select * from calendar_events where calendar_id = :id and status <> 'cancelled' limit :limit",
        id=calendar_id,
        limit=limit,
    )
    return [CalendarEvent.from_row(row) for row in rows]
