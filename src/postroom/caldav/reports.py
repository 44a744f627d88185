"""REPORT: calendar-query, calendar-multiget, free-busy-query (RFC 4791) and sync-collection (RFC 6578).

What is found is read next to all other work and written in a thread: a calendar may have 200,000 events.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from postroom.caldav import filters, paths, properties
from postroom.caldav.filters import EventQuery, TimeRange
from postroom.caldav.properties import PropertyReader
from postroom.caldav.xml_reading import XmlElement
from postroom.caldav.xml_writing import Responded, c, d, multistatus, text
from postroom.clock import DAY
from postroom.errors import BadRequest
from postroom.mailbox.calendars import calendar_events, calendar_files, file_search, free_time
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.calendar_files import FileVersion
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars.file_changes import FileRefused
from postroom.resources import Tx
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.reading.series import Series, occurrences
from postroom_mail.writing.series_file import Kept, write_object, write_objects

LONG_SECONDS = 10.0
LISTED = 20_000  # files of one answer without their content
QUERIED = 5_000  # events whose content one request looks at
MULTIGET = 2_000
CHANGES = 5_000
CHANGES_WITH_DATA = 500
EXPANDED = 2_000  # occurrences of one answer
FREE_BUSY_DAYS = 366


class WantedProperties(Struct, frozen=True):
    """The properties that a report asks for, and what of a series."""

    names: Sequence[str] | None
    expand: TimeRange | None = None

    @property
    def needs_data(self) -> bool:
        return self.names is not None and c("calendar-data") in self.names


def read_wanted(report: XmlElement) -> WantedProperties:
    prop = report.child(d("prop"))
    if prop is None:
        return WantedProperties(None)
    data = prop.child(c("calendar-data"))
    expand = None if data is None else filters.read_range(data.child(c("expand")))
    return WantedProperties([each.name for each in prop.children], expand)


def too_many() -> FileRefused:
    reason = "Too many events fit. Ask for a shorter time, or synchronise with sync-collection."
    return FileRefused("number-of-matches-within-limits", reason, status=507)


# calendar-query


def find_events(tx: Tx, calendar: InboxCalendar, query: EventQuery) -> list[CalendarEvent]:
    if query.event is None:
        return []
    if query.uid:
        found = calendar_events.find_of_calendar(tx, calendar.id, query.uid)
        if found is not None and found.status != calendar_events.CANCELLED:
            return [found]
    if query.time is None:
        events = file_search.list_shown(tx, calendar.id, QUERIED + 1)
    else:
        within = (query.time.since, query.time.until)
        ids = file_search.list_ids_within(tx, calendar, *within, QUERIED + 1)
        events = list(calendar_events.list_by_ids(tx, ids).values())
    if len(events) > QUERIED:
        raise too_many()
    return [each for each in events if each.status != calendar_events.CANCELLED]


def list_files(tx: Tx, calendar: InboxCalendar) -> list[FileVersion]:
    found = calendar_files.list_all(tx, calendar.id, LISTED + 1)
    if len(found) > LISTED:
        raise too_many()
    return found


def write_events(
    reader: PropertyReader,
    path: str,
    events: Sequence[CalendarEvent],
    wanted: WantedProperties,
    query: EventQuery | None,
) -> list[Responded]:
    found, left = [], StepBudget()
    for event in events:
        content = content_of(event)
        if query is not None and not query.is_plain and not filters.fits(query, content):
            continue
        if wanted.expand is not None:
            content = expanded(event, wanted.expand, left)
        found.append(write_file(reader, path, event, content, wanted))
    return found


def content_of(event: CalendarEvent) -> bytes:
    """Return the file of an event: the same bytes as long as the event has the same version."""
    now = datetime.fromtimestamp(event.updated_at / 1000, UTC)
    return write_object(event.series, now, calendar_files.kept_of(event))


def write_file(
    reader: PropertyReader, path: str, event: CalendarEvent, content: bytes, wanted: WantedProperties
) -> Responded:
    name = calendar_files.name_of(event)
    file = FileVersion(name, event.version, event.updated_at, event.id)
    written = partial(text, content.decode())
    return properties.answer(f"{path}{name}", properties.of_file(reader, file, written), wanted.names)


def expanded(event: CalendarEvent, time: TimeRange, steps: StepBudget) -> bytes:
    """Return each occurrence alone, in UTC (RFC 4791, 9.6.5)."""
    series = event.series
    found = occurrences(series, time.since, time.until, EXPANDED, "UTC", steps)
    parts: list[tuple[Series, Kept]] = []
    for each in found:
        part = series.part if each.number < 0 else series.overrides[each.number].part
        only = each.recurrence_id
        if not part.all_day and part.zone:
            start = datetime.fromtimestamp(each.starts_at / 1000, UTC).replace(tzinfo=None).isoformat()
            part = replace(part, start=start, zone="UTC", seconds=(each.ends_at - each.starts_at) // 1000)
            only = start if each.number < 0 and only else only
        elif each.number < 0 and only:
            part = replace(part, start=only)
        parts.append((Series(series.uid, part, only=only), {}))
    now = datetime.fromtimestamp(event.updated_at / 1000, UTC)
    return write_objects(parts, now)


# calendar-multiget


def find_named(tx: Tx, calendar: InboxCalendar, names: Sequence[str]) -> dict[str, CalendarEvent]:
    found: dict[str, CalendarEvent] = {}
    for begin in range(0, len(names), 500):
        for event in calendar_files.find_all(tx, calendar.id, names[begin : begin + 500]):
            if event.status != calendar_events.CANCELLED:
                found[calendar_files.name_of(event)] = event
    return found


def read_names(report: XmlElement, reader: PropertyReader, place: paths.DavPath) -> list[str | None]:
    """Return the names of the files; None for one that is elsewhere."""
    hrefs = list(report.all(d("href")))
    if len(hrefs) > MULTIGET:
        raise BadRequest(f"A calendar-multiget names at most {MULTIGET} files. Ask for the rest apart.")
    read = (paths.read_href(each.text, reader.inbox) for each in hrefs)
    return [each.file_name if each is not None and each.name == place.name else None for each in read]


def write_named(
    reader: PropertyReader,
    path: str,
    names: Sequence[str | None],
    found: dict[str, CalendarEvent],
    wanted: WantedProperties,
    hrefs: Sequence[str],
) -> list[Responded]:
    left, answered = StepBudget(), []
    for name, asked in zip(names, hrefs, strict=True):
        event = None if name is None else found.get(name)
        if event is None:
            answered.append(Responded(asked, status=404))
            continue
        content = content_of(event) if wanted.expand is None else expanded(event, wanted.expand, left)
        answered.append(write_file(reader, path, event, content, wanted))
    return answered


# sync-collection


class Changes(Struct, frozen=True):
    files: list[FileVersion]
    events: dict[str, CalendarEvent]
    version: int
    is_cut: bool


def find_changes(tx: Tx, calendar: InboxCalendar, since: int | None, limit: int, needs_data: bool) -> Changes:
    if since is not None and not calendar_files.knows(tx, calendar.id, since):
        reason = "This sync-token is not known any more. Synchronise without one."
        raise FileRefused("valid-sync-token", reason)
    files = calendar_files.list_changes(tx, calendar.id, since or 0, limit + 1)
    is_cut = len(files) > limit
    files = files[:limit]
    version = files[-1].version if is_cut else calendar.version
    newest = {each.name: each for each in files}
    if since is None:
        newest = {name: each for name, each in newest.items() if each.is_there}
    there = [each.event_id for each in newest.values() if each.is_there] if needs_data else []
    events: dict[str, CalendarEvent] = {}
    for begin in range(0, len(there), 500):
        events |= calendar_events.list_by_ids(tx, there[begin : begin + 500])
    return Changes(list(newest.values()), events, version, is_cut)


def write_changes(
    reader: PropertyReader, calendar: InboxCalendar, path: str, changes: Changes, wanted: WantedProperties
) -> bytes:
    answered = []
    for each in changes.files:
        event = changes.events.get(each.event_id)
        if not each.is_there:
            answered.append(Responded(f"{path}{each.name}", status=404))
        elif event is not None:
            answered.append(write_file(reader, path, event, content_of(event), wanted))
        else:
            answered.append(
                properties.answer(f"{path}{each.name}", properties.of_file(reader, each), wanted.names)
            )
    if changes.is_cut:  # RFC 6578, section 3.6
        answered.append(Responded(path, status=507, error=d("number-of-matches-within-limits")))
    return multistatus(answered, properties.sync_token(calendar, changes.version))


def read_limit(report: XmlElement, most: int) -> int:
    given = report.child(d("limit"))
    number = None if given is None else given.child(d("nresults"))
    written = "" if number is None else number.text.strip()
    return min(int(written), most) if written.isdecimal() and len(written) < 8 and int(written) else most


# free-busy-query


def find_busy(tx: Tx, calendar: InboxCalendar, time: TimeRange) -> list[free_time.BusyTime]:
    if time.until - time.since > FREE_BUSY_DAYS * DAY:
        raise BadRequest(f"A free-busy-query covers at most {FREE_BUSY_DAYS} days.")
    taken = free_time.list_spans(tx, calendar, time.since, time.until, StepBudget())
    return free_time.busy_times(each for each in taken if each.busy)
