"""The fields of a calendar event in a request, read into a series."""

import re
from collections.abc import Collection
from datetime import date, datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits
from postroom.errors import BadRequest
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars.calendars import ZoneName, require_zone
from postroom_mail.mime.address import Address, mailbox_of, validate
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.content_lines import writable
from postroom_mail.reading.recurrence import read_rule
from postroom_mail.reading.series import MAX_LENGTH, EventPart, Series, to_moment
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.invitation import read_moment

RULE_CHARACTERS = 2_000
FIRST_YEAR, LAST_YEAR = 1900, 2200
LINE = r"^(RRULE:[A-Z0-9=;,+-]+|(RDATE|EXDATE)(;(TZID=[A-Za-z0-9/_+-]+|VALUE=(DATE|DATE-TIME)))*:[0-9TZ,]+)$"
_LINE = re.compile(LINE)

Summary = Annotated[
    str, Meta(min_length=1, max_length=limits.CALENDAR_TEXT_CHARACTERS, description="What it is about.")
]
Description = Annotated[
    str, Meta(max_length=limits.EVENT_DESCRIPTION_CHARACTERS, description="Text for attendees.")
]
Location = Annotated[str, Meta(max_length=limits.CALENDAR_TEXT_CHARACTERS, description="Where it is.")]
Url = Annotated[str, Meta(max_length=2000, description="A page about it, or the link of a video meeting.")]
Start = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        description="2026-11-20T15:00:00 in timeZone, or with Z or an offset; a day such as 2026-11-20 for"
        " whole days.",
        examples=["2026-11-20T15:00:00+01:00"],
    ),
]
End = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        description="As start; of whole days the day after the last one.",
        examples=["2026-11-20T16:00:00+01:00"],
    ),
]
Recurrence = Annotated[
    list[Annotated[str, Meta(max_length=RULE_CHARACTERS, extra_json_schema={"pattern": LINE})]],
    Meta(
        max_length=limits.RECURRENCE_LINES,
        description="Lines of RFC 5545: RRULE, RDATE, EXDATE.",
        examples=[["RRULE:FREQ=WEEKLY;COUNT=10"]],
    ),
]
Transparency = Annotated[
    Literal["opaque", "transparent"], Meta(description="transparent takes no time: others may be at once.")
]
AllowOverlap = Annotated[bool, Meta(description="Also at a time that is taken; else that is 409 slot_taken.")]


class NewAttendee(Struct, rename="camel", frozen=True):
    address: Annotated[str, Meta(min_length=3, max_length=limits.ADDRESS_CHARACTERS)]
    name: Annotated[str, Meta(max_length=limits.NAME_CHARACTERS)] = ""
    role: Literal["chair", "req-participant", "opt-participant"] = "req-participant"


Attendees = Annotated[
    list[NewAttendee],
    Meta(max_length=limits.ATTENDEES, description="Who is invited by email."),
]


class NewCalendarEvent(Struct, rename="camel", frozen=True):
    """Give `calendarId`, or `inboxId` for its default calendar."""

    summary: Summary
    start: Start
    end: End
    calendar_id: str | None = None
    inbox_id: str | None = None
    time_zone: ZoneName | None = None
    description: Description = ""
    location: Location = ""
    url: Url = ""
    recurrence: Recurrence = []
    attendees: Attendees = []
    status: Literal["confirmed", "tentative"] = "confirmed"
    transparency: Transparency = "opaque"
    allow_overlap: AllowOverlap = False


class CalendarEventChange(Struct, rename="camel", frozen=True):
    summary: Summary | UnsetType = UNSET
    start: Start | UnsetType = UNSET
    end: End | UnsetType = UNSET
    time_zone: ZoneName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    location: Location | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    recurrence: Recurrence | UnsetType = UNSET
    attendees: Attendees | UnsetType = UNSET
    status: Literal["confirmed", "tentative"] | UnsetType = UNSET
    transparency: Transparency | UnsetType = UNSET
    allow_overlap: AllowOverlap = False


def to_series(body: NewCalendarEvent, calendar: InboxCalendar, organizer: str, uid: str) -> Series:
    start, seconds, zone = read_time(body.start, body.end, body.time_zone or calendar.time_zone)
    require_lines(body.summary, body.location, body.url)
    part = EventPart(
        start=start,
        seconds=seconds,
        zone=zone,
        summary=body.summary,
        description=writable(body.description),
        location=body.location,
        url=body.url,
        status=body.status,
        transparency=body.transparency,
        organizer=organizer if body.attendees else "",
        attendees=read_attendees(body.attendees),
    )
    return Series(uid, part, read_recurrence(body.recurrence))


def changed_fields(
    body: CalendarEventChange, part: EventPart, calendar: InboxCalendar, organizer: str
) -> dict[str, Any]:
    """Return the changed fields, with a start and an end that fit each other."""
    require_lines(*(each for each in (body.summary, body.location, body.url) if each is not UNSET))
    names = ("summary", "description", "location", "url", "status", "transparency")
    fields = {name: given for name in names if (given := getattr(body, name)) is not UNSET}
    if body.description is not UNSET:
        fields["description"] = writable(body.description)
    if body.attendees is not UNSET:
        known = {each.address.lower(): each for each in part.attendees}
        read = read_attendees(body.attendees)
        fields["attendees"] = tuple(known.get(each.address.lower(), each) for each in read)
        fields["organizer"] = organizer
    if body.start is not UNSET or body.end is not UNSET or body.time_zone is not UNSET:
        fields |= changed_time(body, part, calendar)
    return fields


def changed_time(body: CalendarEventChange, part: EventPart, calendar: InboxCalendar) -> dict[str, Any]:
    """Return the new time. A start alone moves the event; an end alone changes its length."""
    zone = part.zone or calendar.time_zone if body.time_zone is UNSET else body.time_zone
    start = part.start if body.start is UNSET else body.start
    if body.end is UNSET:
        written, _, found = read_time(start, start, zone, is_moved=True)
        return {"start": written, "seconds": part.seconds, "zone": found}
    written, seconds, found = read_time(start, body.end, zone)
    return {"start": written, "seconds": seconds, "zone": found}


def read_time(start: str, end: str, zone: str, is_moved: bool = False) -> tuple[str, int, str]:
    """Return the local start, the length and the time zone."""
    require_zone(zone)
    begin, finish = _moment("start", start, zone), _moment("end", end, zone)
    if isinstance(begin, datetime) != isinstance(finish, datetime):
        raise BadRequest("start and end must both be days, or both times.", field="end")
    if not isinstance(begin, datetime):
        days = (finish - begin).days + int(is_moved)
        _require_length(days * 86400)
        return begin.isoformat(), days * 86400, ""
    assert isinstance(finish, datetime)
    length = (to_moment(finish, zone, {}, "UTC") - to_moment(begin, zone, {}, "UTC")) // 1000
    _require_length(length + int(is_moved))
    return begin.isoformat(), length, zone


def _require_length(seconds: int) -> None:
    if not 0 < seconds <= MAX_LENGTH.total_seconds():
        raise BadRequest("end must be after start, and at most ten years later.", field="end")


def _moment(name: str, written: str, zone: str) -> date:
    try:
        found = read_moment(written, zone)
        if not FIRST_YEAR <= found.year <= LAST_YEAR:
            raise ValueError(f"must be between the years {FIRST_YEAR} and {LAST_YEAR}")
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"{name} {error}: {written[:40]!r}.", field=name) from None
    return found


def read_recurrence(lines: list[str]) -> tuple[str, ...]:
    for line in lines:
        if not _LINE.fullmatch(line):
            raise BadRequest(
                f"recurrence has a line that cannot be read: {line[:80]!r}. Use RRULE:FREQ=WEEKLY;COUNT=10.",
                field="recurrence",
            )
        try:
            if line.startswith("RRULE:"):
                read_rule(line[6:])
        except ValueError as error:
            raise BadRequest(f"recurrence {error}: {line[:80]!r}.", field="recurrence") from None
    return tuple(lines)


def read_attendees(given: list[NewAttendee]) -> tuple[Attendee, ...]:
    found: dict[str, Attendee] = {}
    for each in given:
        if CONTROL.search(each.name):
            raise BadRequest("attendees has a name with control characters.", field="attendees")
        try:
            address = validate(each.address)
        except ValueError:
            raise BadRequest(
                f"attendees has what is not an email address: {each.address[:80]!r}. Use name@example.com.",
                field="attendees",
            ) from None
        found.setdefault(address.lower(), Attendee(address, each.name, "needs-action", each.role))
    return tuple(found.values())


def recipients_of(part: EventPart, own: Collection[str]) -> tuple[Address, ...]:
    """Return the attendees to notify; `own` are the addresses of the inbox, in lower case."""
    return tuple(
        Address(each.name, each.address) for each in part.attendees if mailbox_of(each.address) not in own
    )


def require_lines(*written: str) -> None:
    if any(CONTROL.search(each) for each in written):
        raise BadRequest("summary, location and url must be single lines.", field="summary")
