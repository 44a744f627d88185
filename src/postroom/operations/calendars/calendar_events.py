"""Operations on calendar events that need no email: lists, one event, free and busy time, a free slot."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct, field

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import DAY, MINUTE, to_iso
from postroom.errors import BadRequest
from postroom.fields import AskedMoment, InboxFilter, Limit, Offset, Timestamp, read_asked
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events, event_search, free_time
from postroom.mailbox.calendars.calendar_json import ShownCalendarEvent, show_event
from postroom.mailbox.calendars.spans import MAYBE, EventSpan
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.operations.inbox_fields import get_named
from postroom.storage.database import Tx
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.search.tokens import split_sought

DEFAULT_DAYS = 31
QUERY_CHARACTERS = 200

Since = Annotated[AskedMoment, Meta(description="The beginning of the time that is looked at.")]
Until = Annotated[AskedMoment, Meta(description="Its end.")]


class CalendarEventQuery(Struct, frozen=True):
    calendar_id: Annotated[str, Meta(description="Of this calendar.")] | None = field(
        default=None, name="calendarId"
    )
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    since: (
        Annotated[AskedMoment, Meta(description="Events that end after this; with it an agenda.")] | None
    ) = field(default=None, name="from")
    until: Annotated[AskedMoment, Meta(description="Events that begin before this.")] | None = None
    expand: Annotated[bool, Meta(description="false shows each series once, not each occurrence.")] = True
    q: (
        Annotated[
            str,
            Meta(
                max_length=QUERY_CHARACTERS,
                description="Words that an event has in its texts or people; without from and until at any"
                " time, each series once.",
            ),
        ]
        | None
    ) = None
    limit: Limit = limits.PAGE
    offset: Offset = 0

    @property
    def is_long(self) -> bool:
        """Whether it may take so long that it is read next to all other work."""
        return self.q is not None


class CalendarEventPage(Struct, frozen=True):
    data: list[ShownCalendarEvent]
    total: int


class FreeBusyQuery(Struct, frozen=True):
    inbox_ids: Annotated[
        str,
        Meta(
            description="Ids or addresses of inboxes, separated by commas.",
            extra_json_schema={"x-separator": ","},
        ),
    ] = field(name="inboxIds")
    since: Since = field(name="from")
    until: Until


class BusyTime(Struct, frozen=True):
    start: Timestamp
    end: Timestamp
    status: Annotated[str, Meta(description="busy, or tentative: not answered, or not sent yet.")]


class FreeBusy(Struct, frozen=True):
    inboxes: dict[str, list[BusyTime]]


class FindTimes(Struct, frozen=True):
    inbox_ids: Annotated[
        list[str], Meta(min_length=1, max_length=limits.FREE_BUSY_INBOXES, description="Who takes part.")
    ] = field(name="inboxIds")
    duration_minutes: Annotated[int, Meta(ge=5, le=1440)] = field(name="durationMinutes")
    since: Since = field(name="from")
    until: Until
    limit: Annotated[int, Meta(ge=1, le=limits.SLOTS)] = 10


class Slot(Struct, frozen=True):
    start: Timestamp
    end: Timestamp


class Slots(Struct, frozen=True):
    slots: list[Slot]


def list_calendar_events(tx: Tx, caller: Caller, query: CalendarEventQuery, now: int) -> CalendarEventPage:
    """List the events of a calendar or an inbox: each occurrence in a time, in order"""
    found = find_calendars(tx, caller.scope, query)
    words = read_words(query.q)
    if query.since is None and query.until is None and words:
        return search(tx, found, words, query)
    if query.since is None and query.until is None and not query.expand:
        return list_series(tx, found, query)
    since, until = read_range(query.since, query.until, limits.CALENDAR_RANGE_DAYS, now)
    steps = StepBudget()
    spans = [(each, span) for each in found for span in free_time.list_spans(tx, each, since, until, steps)]
    if len(found) > 1:
        spans.sort(key=lambda pair: (pair[1].starts_at, pair[1].event_id))
    if words:
        spans = saying(tx, spans, words)
    if not query.expand:
        spans = first_of_each(spans)
    page = spans[query.offset : query.offset + query.limit]
    events = calendar_events.list_by_ids(tx, [span.event_id for _, span in page])
    shown = [
        show_event(events[span.event_id], calendar, span if query.expand else None)
        for calendar, span in page
        if span.event_id in events
    ]
    return CalendarEventPage(shown, len(spans))


def read_words(given: str | None) -> list[str]:
    """Return the words of a search, folded as those of emails are."""
    words = split_sought(given)[0] if given else []
    if given is not None and not words:
        raise BadRequest("q has no word to search for.", field="q")
    return words


def search(
    tx: Tx, found: list[InboxCalendar], words: list[str], query: CalendarEventQuery
) -> CalendarEventPage:
    calendars = {each.id: each for each in found}
    events = event_search.find(tx, list(calendars), words)
    page = events[query.offset : query.offset + query.limit]
    return CalendarEventPage([show_event(each, calendars[each.calendar_id]) for each in page], len(events))


def saying(
    tx: Tx, spans: list[tuple[InboxCalendar, EventSpan]], words: list[str]
) -> list[tuple[InboxCalendar, EventSpan]]:
    events = calendar_events.list_by_ids(tx, [span.event_id for _, span in spans])
    fitting = {event_id for event_id, event in events.items() if event_search.has(event, words)}
    return [pair for pair in spans if pair[1].event_id in fitting]


def find_calendars(tx: Tx, scope: Scope, query: CalendarEventQuery) -> list[InboxCalendar]:
    if query.calendar_id is not None:
        return [inbox_calendars.get(tx, scope, query.calendar_id)]
    inbox_id = query.inbox_id or scope.inbox_id
    if inbox_id is None:
        raise BadRequest("Give calendarId or inboxId.", field="inboxId")
    return inbox_calendars.list_of_inbox(tx, inboxes.get(tx, scope, inbox_id).id)


def list_series(tx: Tx, found: list[InboxCalendar], query: CalendarEventQuery) -> CalendarEventPage:
    shown: list[ShownCalendarEvent] = []
    total, offset = 0, query.offset
    for calendar in found:
        room = query.limit - len(shown)
        events, number = calendar_events.list_of_calendar(tx, calendar.id, room, max(offset - total, 0))
        shown += (show_event(each, calendar) for each in events)
        total += number
    return CalendarEventPage(shown, total)


def first_of_each(spans: list[tuple[InboxCalendar, EventSpan]]) -> list[tuple[InboxCalendar, EventSpan]]:
    found: dict[str, tuple[InboxCalendar, EventSpan]] = {}
    for calendar, span in spans:
        found.setdefault(span.event_id, (calendar, span))
    return list(found.values())


def read_range(since: str | None, until: str | None, days: int, now: int) -> tuple[int, int]:
    """Return the range that is asked for; by default a month from now."""
    first = read_asked(since, "from")
    first = now if first is None else first
    last = read_asked(until, "until")
    last = first + min(days, DEFAULT_DAYS) * DAY if last is None else last
    if not first < last <= first + days * DAY:
        raise BadRequest(f"until must be after from, and at most {days} days later.", field="until")
    return first, last


def get_calendar_event(tx: Tx, caller: Caller, calendar_event_id: str) -> ShownCalendarEvent:
    """Get a calendar event, or the series"""
    event = calendar_events.get(tx, caller.scope, calendar_event_id)
    return show_event(event, inbox_calendars.get(tx, event.scope, event.calendar_id))


def get_free_busy(tx: Tx, caller: Caller, query: FreeBusyQuery, now: int) -> FreeBusy:
    """Get when inboxes are busy, without saying with what"""
    since, until = read_range(query.since, query.until, limits.FREE_BUSY_DAYS, now)
    steps, found = StepBudget(), {}
    for inbox_id in named(tx, caller.scope, query.inbox_ids.split(",")):
        taken = free_time.list_taken(tx, inbox_id, since, until, steps)
        times = free_time.busy_times(taken)
        found[inbox_id] = [BusyTime(to_iso(each.start), to_iso(each.end), each.status) for each in times]
    return FreeBusy(found)


def find_times(tx: Tx, caller: Caller, body: FindTimes, now: int) -> Slots:
    """Find times at which all of these inboxes are free, within their working hours"""
    since, until = read_range(body.since, body.until, limits.FREE_BUSY_DAYS, now)
    since, steps = max(since, now), StepBudget()
    inbox_ids = named(tx, caller.scope, body.inbox_ids, partial(get_named, field="inboxIds"))
    working = [
        free_time.working_times(inbox_calendars.default_of(tx, each), since, until) for each in inbox_ids
    ]
    taken = [
        (span.starts_at, span.ends_at)
        for each in inbox_ids
        for span in free_time.list_taken(tx, each, since, until, steps)
        if span.busy >= MAYBE
    ]
    found = free_time.slots(working, free_time.merge(taken), body.duration_minutes * MINUTE, body.limit)
    return Slots([Slot(to_iso(start), to_iso(end)) for start, end in found])


def named(
    tx: Tx, scope: Scope, given: list[str], get: Callable[[Tx, Scope, str], Inbox] = inboxes.get
) -> list[str]:
    wanted = list(dict.fromkeys(each.strip() for each in given if each.strip()))
    if not 0 < len(wanted) <= limits.FREE_BUSY_INBOXES:
        raise BadRequest(f"inboxIds must name 1 to {limits.FREE_BUSY_INBOXES} inboxes.", field="inboxIds")
    return [get(tx, scope, each).id for each in wanted]
