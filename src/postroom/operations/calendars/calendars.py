"""Operations on the calendars of inboxes: made, changed, deleted, and a private link to each."""

import hashlib
import re
import secrets
from typing import Annotated
from zoneinfo import available_timezones

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts import audit, names
from postroom.accounts.keys import Caller
from postroom.calendar_errors import DefaultCalendar
from postroom.config import Config
from postroom.errors import BadRequest, no_such
from postroom.fields import InboxFilter, Limit, Offset, PodFilter
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars.calendar_json import ShownCalendar, show_calendar
from postroom.mailbox.inbox_calendars import WEEKDAYS, InboxCalendar, WorkingHours
from postroom.operations.inbox_fields import get_named
from postroom.storage.database import Tx

TIMES_OF_A_DAY = 10
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d|24:00", re.ASCII)

CalendarName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.NAME_CHARACTERS,
        description="Name of the calendar.",
        examples=["Interviews"],
        extra_json_schema={"pattern": names.GIVEN_PATTERN},
    ),
]
ZoneName = Annotated[
    str, Meta(max_length=64, description="A zone such as Europe/Berlin.", examples=["Europe/Berlin"])
]
Hours = Annotated[
    WorkingHours,
    Meta(
        description="Working hours of each day, mon to sun; a day that is left out is free. {} is always.",
        examples=[{"mon": [["09:00", "17:00"]]}],
    ),
]
Reminder = Annotated[
    int,
    Meta(
        ge=0,
        le=limits.REMINDER_MINUTES,
        description="Minutes before an event at which calendar.starting is recorded; null: never.",
    ),
]
SourceUrl = Annotated[
    str,
    Meta(
        max_length=2000,
        description="A feed (.ics) that this calendar follows: its events are those of the feed. null: none.",
    ),
]


class NewCalendar(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[str, Meta(description="The inbox that owns it.")]
    name: CalendarName
    time_zone: ZoneName | None = None
    working_hours: Hours | None = None
    reminder_minutes: Reminder | UnsetType | None = UNSET
    source_url: SourceUrl | None = None


class CalendarChange(Struct, rename="camel", frozen=True):
    name: CalendarName | UnsetType = UNSET
    time_zone: ZoneName | UnsetType = UNSET
    working_hours: Hours | UnsetType = UNSET
    reminder_minutes: Reminder | UnsetType | None = UNSET
    source_url: SourceUrl | UnsetType | None = UNSET


class CalendarQuery(Struct, rename="camel", frozen=True):
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None
    limit: Limit = limits.PAGE
    offset: Offset = 0


class CalendarPage(Struct, frozen=True):
    data: list[ShownCalendar]
    total: int


class CalendarFeed(Struct, frozen=True):
    """A private link: anyone with it reads the calendar. A new one ends the old one."""

    url: str


def create_calendar(tx: Tx, caller: Caller, body: NewCalendar, now: int) -> ShownCalendar:
    """Create another calendar of an inbox"""
    inbox = get_named(tx, caller.scope, body.inbox_id)
    made = replace(inbox_calendars.new(inbox.scope, ids.new(ids.CALENDAR, now), now), name=body.name)
    made = changed(
        made, CalendarChange(body.name, body.time_zone or UNSET, _given(body), body.reminder_minutes)
    )
    made = with_source(made, body.source_url, now)
    inbox_calendars.add(tx, made)
    shown = show_calendar(made)
    audit.record_by(tx, caller, "calendar.created", made.id, now, within=made.scope, after=shown)
    return shown


def _given(body: NewCalendar) -> WorkingHours | UnsetType:
    return UNSET if body.working_hours is None else body.working_hours


def list_calendars(tx: Tx, caller: Caller, query: CalendarQuery) -> CalendarPage:
    """List calendars: of an inbox, a pod or all; the default one of each inbox first"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        raise no_such("inbox or pod")
    found, total = inbox_calendars.list_within(tx, scope, query.limit, query.offset)
    return CalendarPage([show_calendar(each) for each in found], total)


def get_calendar(tx: Tx, caller: Caller, calendar_id: str) -> ShownCalendar:
    """Get a calendar"""
    return show_calendar(inbox_calendars.get(tx, caller.scope, calendar_id))


def change_calendar(
    tx: Tx, caller: Caller, calendar_id: str, body: CalendarChange, now: int
) -> ShownCalendar:
    """Change a calendar's name, time zone, working hours, reminder or feed"""
    calendar = inbox_calendars.get(tx, caller.scope, calendar_id)
    after = changed(calendar, body)
    if body.source_url is not UNSET:
        after = with_source(after, body.source_url, now)
    inbox_calendars.put(tx, after)
    audit.record_by(
        tx,
        caller,
        "calendar.changed",
        calendar.id,
        now,
        within=calendar.scope,
        before=show_calendar(calendar),
        after=show_calendar(after),
    )
    return show_calendar(after)


def changed(calendar: InboxCalendar, body: CalendarChange) -> InboxCalendar:
    if body.name is not UNSET:
        names.require_clean(body.name, "name")
        calendar = replace(calendar, name=body.name)
    if body.time_zone is not UNSET:
        require_zone(body.time_zone)
        calendar = replace(calendar, time_zone=body.time_zone)
    if body.working_hours is not UNSET:
        require_hours(body.working_hours)
        written = msgspec.json.encode(body.working_hours).decode()
        calendar = replace(calendar, working_hours=written)
    if body.reminder_minutes is not UNSET:
        calendar = replace(calendar, reminder_minutes=body.reminder_minutes)
    return calendar


def with_source(calendar: InboxCalendar, url: str | None, now: int) -> InboxCalendar:
    """Return the calendar with its feed. The default calendar has none: it holds the inbox's own events."""
    if url is not None and calendar.is_default:
        raise BadRequest("The default calendar follows no feed. Create another calendar.", field="sourceUrl")
    return replace(calendar, source_url=url, source_due_at=None if url is None else now, source_error=None)


def require_zone(name: str) -> None:
    if name not in available_timezones():
        raise BadRequest(
            f"timeZone is not known: {name[:64]!r}. Use one such as Europe/Berlin.", field="timeZone"
        )


def require_hours(given: WorkingHours) -> None:
    for day, times in given.items():
        if day not in WEEKDAYS:
            raise BadRequest(
                f"workingHours has {day[:20]!r}. Days are {', '.join(WEEKDAYS)}.", field="workingHours"
            )
        if len(times) > TIMES_OF_A_DAY:
            raise BadRequest(
                f"workingHours has more than {TIMES_OF_A_DAY} times a day.", field="workingHours"
            )
        for each in times:
            if not all(map(_CLOCK.fullmatch, each)) or each[0] >= each[1]:
                raise BadRequest(
                    'workingHours has a time that is not such as ["09:00", "17:00"].', field="workingHours"
                )


def delete_calendar(tx: Tx, caller: Caller, calendar_id: str, now: int) -> None:
    """Delete a calendar with its events; nobody is notified by email"""
    calendar = inbox_calendars.get(tx, caller.scope, calendar_id)
    if calendar.is_default:
        raise DefaultCalendar("This is the default calendar of its inbox. It is deleted with the inbox.")
    inbox_calendars.remove(tx, calendar)
    before = show_calendar(calendar)
    audit.record_by(tx, caller, "calendar.deleted", calendar.id, now, within=calendar.scope, before=before)


def create_calendar_feed(tx: Tx, caller: Caller, calendar_id: str, config: Config, now: int) -> CalendarFeed:
    """Create a private .ics link of a calendar; an earlier one ends"""
    calendar = inbox_calendars.get(tx, caller.scope, calendar_id)
    token = secrets.token_urlsafe(32)
    inbox_calendars.put(tx, replace(calendar, feed_hash=hash_token(token)))
    audit.record_by(tx, caller, "calendar.feed_created", calendar.id, now, within=calendar.scope)
    return CalendarFeed(f"{config.base_url}/calendars/{token}.ics")


def delete_calendar_feed(tx: Tx, caller: Caller, calendar_id: str, now: int) -> None:
    """End the private .ics link of a calendar"""
    calendar = inbox_calendars.get(tx, caller.scope, calendar_id)
    inbox_calendars.put(tx, replace(calendar, feed_hash=None))
    audit.record_by(tx, caller, "calendar.feed_ended", calendar.id, now, within=calendar.scope)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
