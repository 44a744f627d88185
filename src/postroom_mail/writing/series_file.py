"""A series as a calendar file (RFC 5545): in invitations, feeds and exports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from postroom_mail.mime.address import Address, parse_list
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import EventPart, Series, to_moment
from postroom_mail.reading.time_zones import known_zone
from postroom_mail.writing import calendar_lines, zone_rules
from postroom_mail.writing.invitation import CANCEL, PRODUCT, CalendarFile, in_calendar

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Kept = Mapping[str, Sequence[str]]  # lines by the exception they are in; "" is the series
NOTHING_KEPT: Kept = {}


class EventMail(Struct, frozen=True):
    """What an email says about an event: all of it, or the one occurrence `only`."""

    method: str
    series: Series
    only: str = ""

    @property
    def words(self) -> str:
        """Its text that people read besides the mail."""
        part = part_of(self.series, self.only)
        return f"{part.summary}\n{part.location}\n{part.description}\n{part.url}"


def part_of(series: Series, recurrence_id: str) -> EventPart:
    found = (each.part for each in series.overrides if each.recurrence_id == recurrence_id)
    return next(found, series.part)


def write_mail(mail: EventMail, sent_at: datetime) -> CalendarFile:
    series = mail.series
    if mail.only:
        parts = [(mail.only, part_of(series, mail.only))]
    else:
        parts = [("", series.part), *((each.recurrence_id, each.part) for each in series.overrides)]
    events = [
        line for name, part in parts for line in _event(series, name, part, sent_at, mail.method == CANCEL)
    ]
    return in_calendar(mail.method, [*_zones([series]), *events])


def write_feed(name: str, found: Iterable[Series], now: datetime) -> bytes:
    """Write a calendar to subscribe to."""
    listed = list(found)
    head = [
        "BEGIN:VCALENDAR",
        f"PRODID:{PRODUCT}",
        "VERSION:2.0",
        "CALSCALE:GREGORIAN",
        calendar_lines.text("X-WR-CALNAME", name),
    ]
    lines = [line for each in listed for line in event_lines(each, now)]
    return calendar_lines.to_bytes([*head, *_zones(listed), *lines, "END:VCALENDAR"])


def write_object(series: Series, now: datetime, kept: Kept) -> bytes:
    """Write one event as CalDAV has it, with the lines that a client keeps in it (RFC 4791, 4.1)."""
    return write_objects([(series, kept)], now)


def write_objects(found: Sequence[tuple[Series, Kept]], now: datetime) -> bytes:
    head = ["BEGIN:VCALENDAR", f"PRODID:{PRODUCT}", "VERSION:2.0", "CALSCALE:GREGORIAN"]
    lines = [line for series, kept in found for line in event_lines(series, now, kept)]
    return calendar_lines.to_bytes([*head, *_zones([series for series, _ in found]), *lines, "END:VCALENDAR"])


def event_lines(series: Series, now: datetime, kept: Kept = NOTHING_KEPT) -> Iterator[str]:
    """Yield the series and its exceptions, without the calendar around them."""
    yield from _event(series, series.only, series.part, now, more=kept.get("", ()))
    for each in series.overrides:
        yield from _event(series, each.recurrence_id, each.part, now, more=kept.get(each.recurrence_id, ()))


def _zones(found: Iterable[Series]) -> list[str]:
    """Return the rules of each zone that is named, for readers that know no names."""
    years: dict[str, int] = {}
    for series in found:
        for part in (series.part, *(each.part for each in series.overrides)):
            if part.zone and part.zone != "UTC" and known_zone(part.zone) is not None:
                years[part.zone] = min(part.local.year, years.get(part.zone, 9999))
    return [line for name, year in years.items() for line in zone_rules.zone_lines(name, year)]


def _event(
    series: Series,
    recurrence_id: str,
    part: EventPart,
    now: datetime,
    is_off: bool = False,
    more: Sequence[str] = (),
) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield calendar_lines.text("UID", series.uid)
    yield f"DTSTAMP:{calendar_lines.stamp(now)}"
    yield f"SEQUENCE:{part.sequence}"
    if recurrence_id:
        yield _moment("RECURRENCE-ID", datetime.fromisoformat(recurrence_id), series.part, series)
    yield _moment("DTSTART", part.local, part, series)
    if part.seconds:
        yield _end(part, series)
    if not recurrence_id:
        yield from series.lines
    yield calendar_lines.text("SUMMARY", part.summary)
    for name, value in (("DESCRIPTION", part.description), ("LOCATION", part.location), ("URL", part.url)):
        if value:
            yield calendar_lines.text(name, value)
    if part.organizer:
        yield calendar_lines.person("ORGANIZER", to_address(part.organizer))
    yield from map(_attendee, part.attendees)
    yield f"STATUS:{'CANCELLED' if is_off else part.status.upper()}"
    yield f"TRANSP:{part.transparency.upper()}"
    yield from more
    yield "END:VEVENT"


def to_address(written: str) -> Address:
    return next(iter(parse_list(written)), Address("", written))


def _attendee(each: Attendee) -> str:
    status = (each.participation_status or "needs-action").upper()
    role = (each.role or "req-participant").upper()
    asked = (";RSVP=TRUE",) if status == "NEEDS-ACTION" else ()
    safe = [word for word in (status, role) if word.replace("-", "").isalnum()]
    parameters = [f";{name}={word}" for name, word in zip(("PARTSTAT", "ROLE"), safe, strict=False)]
    return calendar_lines.person("ATTENDEE", Address(each.name, each.address), *parameters, *asked)


def _end(part: EventPart, series: Series) -> str:
    if part.all_day:
        return calendar_lines.moment("DTEND", part.local.date() + timedelta(seconds=part.seconds))
    if not part.zone:
        return _moment("DTEND", part.local + timedelta(seconds=part.seconds), part, series)
    begin = to_moment(part.local, part.zone, series.zone_rules, "UTC")
    end = EPOCH + timedelta(milliseconds=begin, seconds=part.seconds)
    known = known_zone(part.zone)
    return calendar_lines.moment(
        "DTEND", *((end, "") if known is None else (end.astimezone(known), _named(part.zone)))
    )


def _moment(name: str, local: datetime, part: EventPart, series: Series) -> str:
    """Return a time in its zone; in UTC if the zone is known by rules alone; floating without one."""
    if part.all_day:
        day: date = local.date()
        return calendar_lines.moment(name, day)
    if not part.zone:
        return f"{name}:{local:%Y%m%dT%H%M%S}"
    if known_zone(part.zone) is None or part.zone == "UTC":
        at = to_moment(local, part.zone, series.zone_rules, "UTC")
        return calendar_lines.moment(name, EPOCH + timedelta(milliseconds=at))
    return calendar_lines.moment(name, local, part.zone)


def _named(zone: str) -> str:
    return "" if zone == "UTC" else zone
