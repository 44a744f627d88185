"""The JSON of calendars and their events: times with the offset of their zone, or days."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom.clock import to_iso
from postroom.fields import Timestamp
from postroom.mailbox.calendars.calendar_events import CalendarEvent, Proposal
from postroom.mailbox.calendars.spans import EventSpan
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inbox_calendars import InboxCalendar, WorkingHours
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import EventPart, Series, to_moment
from postroom_mail.reading.time_zones import known_zone

When = Annotated[str, Meta(examples=["2026-11-20T15:00:00+01:00"])]


class ShownCalendar(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    name: str
    time_zone: str
    working_hours: WorkingHours
    is_default: bool
    reminder_minutes: Annotated[
        int | None, Meta(description="Before the start, for calendar.starting. null: no such event.")
    ]
    source_url: Annotated[str | None, Meta(description="The feed that this calendar follows.")]
    source_error: Annotated[str | None, Meta(description="Why the feed could not be read last time.")]
    created_at: Timestamp


class ShownCalendarEvent(Struct, rename="camel", frozen=True):
    """`recurrenceId` names an occurrence of a series, or is null."""

    id: str
    calendar_id: str
    inbox_id: str
    uid: str
    summary: str
    description: str
    location: str
    start: When
    end: When
    time_zone: str
    all_day: bool
    recurrence: list[str]
    recurrence_id: str | None
    attendees: list[Attendee]
    organizer: str
    status: Literal["confirmed", "tentative", "cancelled"]
    own_response: Annotated[
        Literal["needs-action", "accepted", "declined", "tentative"] | None,
        Meta(description="What this inbox answered; null for its own events."),
    ]
    transparency: Literal["opaque", "transparent"]
    sequence: int
    message_id: str | None
    thread_id: str | None
    url: str
    verdict: Annotated[
        Literal["clean", "suspicious", "malicious"] | None, Meta(description="Of the email that brought it.")
    ]
    proposals: list[Proposal]
    created_at: Timestamp
    updated_at: Timestamp
    hold: ShownHold | UnsetType = UNSET


def show_calendar(calendar: InboxCalendar) -> ShownCalendar:
    return ShownCalendar(
        id=calendar.id,
        inbox_id=calendar.inbox_id,
        name=calendar.name,
        time_zone=calendar.time_zone,
        working_hours=calendar.hours,
        is_default=bool(calendar.is_default),
        reminder_minutes=calendar.reminder_minutes,
        source_url=calendar.source_url,
        source_error=calendar.source_error,
        created_at=to_iso(calendar.created_at),
    )


def show_event(
    event: CalendarEvent,
    calendar: InboxCalendar,
    span: EventSpan | None = None,
    hold: ShownHold | None = None,
) -> ShownCalendarEvent:
    """Return the series as shown, or the occurrence of a span."""
    series = event.series
    number = -1 if span is None else span.number
    part = series.part if number < 0 else series.overrides[number].part
    start, end = when(series, part, calendar, None if span is None else span.starts_at)
    return ShownCalendarEvent(
        id=event.id,
        calendar_id=event.calendar_id,
        inbox_id=event.inbox_id,
        uid=series.uid,
        summary=part.summary,
        description=part.description,
        location=part.location,
        start=start,
        end=end,
        time_zone=part.zone or calendar.time_zone,
        all_day=part.all_day,
        recurrence=list(series.lines),
        recurrence_id=shown_recurrence_id(series, calendar, span),
        attendees=list(part.attendees),
        organizer=part.organizer,
        status=status_of(event, part),
        own_response=event.own_response,  # type: ignore[arg-type]
        transparency=part.transparency,  # type: ignore[arg-type]
        sequence=part.sequence,
        message_id=event.message_id,
        thread_id=event.thread_id,
        url=part.url,
        verdict=event.verdict,  # type: ignore[arg-type]
        proposals=list(event.proposals),
        created_at=to_iso(event.created_at),
        updated_at=to_iso(event.updated_at),
        hold=hold or UNSET,
    )


def status_of(event: CalendarEvent, part: EventPart) -> Literal["confirmed", "tentative", "cancelled"]:
    """Return the status. It is tentative until the email about it has left, or the invitation is accepted."""
    if "cancelled" in (event.status, part.status):
        return "cancelled"
    is_open = event.is_waiting or event.own_response in ("needs-action", "tentative")
    return "tentative" if is_open or "tentative" in (event.status, part.status) else "confirmed"


def when(series: Series, part: EventPart, calendar: InboxCalendar, at: int | None = None) -> tuple[str, str]:
    """Start and end of a part, or of its occurrence that begins `at`."""
    if part.all_day:
        zone = calendar.time_zone
        start = part.local.date() if at is None else shown_at(at, zone, series).date()
        return start.isoformat(), (start + timedelta(seconds=part.seconds)).isoformat()
    zone = part.zone or calendar.time_zone
    begin = to_moment(part.local, zone, series.zone_rules, calendar.time_zone) if at is None else at
    end = begin + part.seconds * 1000
    return shown_at(begin, zone, series).isoformat(), shown_at(end, zone, series).isoformat()


def shown_at(moment: int, zone: str, series: Series) -> datetime:
    """Return the moment in the zone, with its offset then; in UTC if only the file's own rules know it."""
    return datetime.fromtimestamp(moment // 1000, known_zone(zone) or UTC)


def shown_recurrence_id(series: Series, calendar: InboxCalendar, span: EventSpan | None) -> str | None:
    written = span.recurrence_id if span is not None else series.only
    if not written:
        return None
    if len(written) == 10:
        return written
    zone = series.part.zone or calendar.time_zone
    at = to_moment(datetime.fromisoformat(written), zone, series.zone_rules, calendar.time_zone)
    return shown_at(at, zone, series).isoformat()
