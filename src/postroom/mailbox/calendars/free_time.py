"""Free and busy time of inboxes, and slots in which all of them are free."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from postroom.clock import MINUTE
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import spans
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.spans import EXPANDED_SERIES, STEPS, EventSpan, busyness
from postroom.mailbox.inbox_calendars import WEEKDAYS, InboxCalendar
from postroom.storage.database import Tx
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.reading.series import LATEST, Series, occurrences, to_local, to_moment

STEP = 15 * MINUTE  # between the starts of slots
Interval = tuple[int, int]


class BusyTime(Struct, frozen=True):
    start: int
    end: int
    status: str


def list_spans(tx: Tx, calendar: InboxCalendar, since: int, until: int, steps: StepBudget) -> list[EventSpan]:
    """Return when the events of a calendar take place, in order.

    What is not stored is expanded within `steps`.
    """
    stored = spans.list_of(tx, "calendar_id", calendar.id, since, until)
    return with_expanded(tx, [calendar], stored, since, until, steps)


def list_taken(tx: Tx, inbox_id: str, since: int, until: int, steps: StepBudget) -> list[EventSpan]:
    """Return what takes time of an inbox: events of all its calendars, and reservations by others."""
    owned = inbox_calendars.list_of_inbox(tx, inbox_id)
    stored = spans.list_of(tx, "inbox_id", inbox_id, since, until)
    return [each for each in with_expanded(tx, owned, stored, since, until, steps) if each.busy]


def with_expanded(
    tx: Tx, owned: Sequence[InboxCalendar], stored: list[EventSpan], since: int, until: int, steps: StepBudget
) -> list[EventSpan]:
    rows = [(each, row) for each in owned for row in spans.list_partly_stored(tx, each.id, since, until)]
    if not rows:
        return stored
    again = {row["id"] for _, row in rows}
    found = [each for each in stored if each.event_id not in again]
    for calendar, row in rows[:EXPANDED_SERIES]:
        event = CalendarEvent.from_row(row)
        for each in occurrences(event.series, since, until, spans.MOST, calendar.time_zone, steps):
            taken = busyness(event.series, each.number, event.busy)
            found.append(
                EventSpan(event.id, each.starts_at, each.ends_at, each.recurrence_id, each.number, taken)
            )
    return sorted(found, key=lambda each: (each.starts_at, each.event_id))


def busy_times(taken: Iterable[EventSpan]) -> list[BusyTime]:
    """Return merged times, first the busy ones; tentative times are what those leave."""
    certain = merge((each.starts_at, each.ends_at) for each in taken if each.busy == spans.BUSY)
    open_ones = merge((each.starts_at, each.ends_at) for each in taken if each.busy != spans.BUSY)
    tentative = subtract(open_ones, certain)
    found = [BusyTime(*each, "busy") for each in certain] + [
        BusyTime(*each, "tentative") for each in tentative
    ]
    return sorted(found, key=lambda each: each.start)


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def subtract(intervals: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """Return what of merged intervals lies outside of other merged ones."""
    found: list[Interval] = []
    position = 0
    for begin, end in intervals:
        start = begin
        while position < len(taken) and taken[position][1] <= start:
            position += 1
        number = position
        while number < len(taken) and taken[number][0] < end:
            if taken[number][0] > start:
                found.append((start, taken[number][0]))
            start = max(start, taken[number][1])
            number += 1
        if start < end:
            found.append((start, end))
    return found


def working_times(calendar: InboxCalendar, since: int, until: int) -> list[Interval]:
    """Return the working hours of each day, at the UTC offset that its zone has then."""
    hours = calendar.hours
    if not hours:
        return [(since, until)]
    day, last = (to_local(each, calendar.time_zone, {}).date() for each in (since, until))
    found = []
    while day <= last:
        for begin, end in hours.get(WEEKDAYS[day.weekday()], []):
            start, stop = (
                to_moment(_at(day.isoformat(), each), calendar.time_zone, {}, "UTC") for each in (begin, end)
            )
            found.append((max(start, since), min(stop, until)))
        day += timedelta(days=1)
    return merge(found)


def _at(day: str, clock: str) -> datetime:
    """Return the moment. 24:00 is the end of the day."""
    if clock == "24:00":
        return datetime.fromisoformat(day) + timedelta(days=1)
    return datetime.fromisoformat(f"{day}T{clock}")


def slots(
    working: Sequence[Sequence[Interval]], taken: Sequence[Interval], length: int, most: int
) -> Iterator[Interval]:
    """Yield the times at which everybody works and nobody is busy, earliest first, at quarters of an hour."""
    free = list(working[0]) if working else []
    for other in working[1:]:
        free = intersect(free, other)
    number = 0
    for start, end in subtract(free, taken):
        begin = -(-start // STEP) * STEP
        while begin + length <= end:
            yield begin, begin + length
            number += 1
            if number == most:
                return
            begin += max(STEP, -(-length // STEP) * STEP)


def intersect(one: Sequence[Interval], other: Sequence[Interval]) -> list[Interval]:
    found, left, right = [], 0, 0
    while left < len(one) and right < len(other):
        start, end = max(one[left][0], other[right][0]), min(one[left][1], other[right][1])
        if start < end:
            found.append((start, end))
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1
    return found


def find_conflict(
    tx: Tx, inbox_id: str, calendar: InboxCalendar, series: Series, event_id: str
) -> EventSpan | None:
    """Return what else takes a time of this series already; its first occurrences are looked at."""
    begin = to_moment(series.part.local, series.part.zone, series.zone_rules, calendar.time_zone)
    wanted = occurrences(series, begin - 1, LATEST, spans.STORED, calendar.time_zone, StepBudget(STEPS))
    wanted = [each for each in wanted if busyness(series, each.number, spans.BUSY)]
    if not wanted:
        return None
    taken = list_taken(tx, inbox_id, wanted[0].starts_at, wanted[-1].ends_at, StepBudget(STEPS))
    firm = [each for each in taken if each.busy >= spans.TAKEN and each.event_id != event_id]
    position = 0
    for span in sorted(firm, key=lambda each: each.starts_at):
        while position < len(wanted) and wanted[position].ends_at <= span.starts_at:
            position += 1
        ahead = position
        while ahead < len(wanted) and wanted[ahead].starts_at < span.ends_at:
            if wanted[ahead].ends_at > span.starts_at and span.ends_at > span.starts_at:
                return span
            ahead += 1
    return None
