"""The appointments of a calendar file with all that repeats and differs in them, and their times.

Bounded: how many appointments, exceptions, people and occurrences, and how long a text.
"""

import heapq
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from postroom_mail.reading.calendar import Attendee, EventFile, WrittenEvent
from postroom_mail.reading.content_lines import ContentLine, content_lines, writable
from postroom_mail.reading.recurrence import StepBudget, read_rule, times
from postroom_mail.reading.time_zones import Rules, known_zone, utc_offset
from postroom_mail.reading.written_times import FIRST_YEAR, LAST_YEAR, WrittenMoment, read_duration

MAX_SERIES = 2_000
MAX_OVERRIDES = 200
MAX_LINES = 100
LONGEST_LINE = 4_000
MAX_DATES = 1_000
MAX_LENGTH = timedelta(days=3660)
STATUSES = frozenset({"tentative", "confirmed", "cancelled"})
EARLIEST, LATEST = -62_000_000_000_000, 250_000_000_000_000  # moments that every zone can show
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (moments are counted in local time too)


class EventPart(Struct, frozen=True, omit_defaults=True):
    """One appointment, or one occurrence that differs. `start` is a day, or a local time of `zone`.

    A time without a zone is floating: it is the same on every clock. `seconds` is how long it takes.
    """

    start: str
    seconds: int
    zone: str = ""
    summary: str = ""
    description: str = ""
    location: str = ""
    url: str = ""
    status: str = "confirmed"
    transparency: str = "opaque"
    organizer: str = ""
    attendees: tuple[Attendee, ...] = ()
    sequence: int = 0

    @property
    def all_day(self) -> bool:
        return len(self.start) == 10

    @property
    def local(self) -> datetime:
        return datetime.fromisoformat(self.start)


class Override(Struct, frozen=True):
    """The occurrence of this start is another, or cancelled."""

    recurrence_id: str
    part: EventPart


class Series(Struct, frozen=True, omit_defaults=True):
    """An appointment with its repetitions: lines of RFC 5545. `only` names the one occurrence it is about."""

    uid: str
    part: EventPart
    lines: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()
    zone_rules: Rules = {}
    only: str = ""


class EventTime(Struct, frozen=True):
    """A time at which a series takes place, in milliseconds; `number` is its override, -1 if none."""

    recurrence_id: str
    starts_at: int
    ends_at: int
    number: int = -1


class CalendarObjects(Struct, frozen=True):
    """What a calendar file says: its method ("" in a feed), and the series in it. `sender` answered."""

    method: str
    series: tuple[Series, ...]
    is_cut: bool = False
    comment: str = ""


def read_objects(raw: bytes) -> CalendarObjects:
    """Return all appointments of a calendar file, each with its exceptions. Never raises."""
    file = EventFile.read(raw, MAX_SERIES)
    events = [event for event in file.events if event.kind == "VEVENT"]
    found: dict[str, list[tuple[str, EventPart, WrittenEvent]]] = {}
    for event in events:
        if (part := _part(event, file.rules)) is not None:
            found.setdefault(event.uid(), []).append((event.recurrence_id(), part, event))
    series = tuple(_series(uid, parts, file.rules) for uid, parts in found.items())
    comment = next((event.text_of("COMMENT") for event in events), "")
    return CalendarObjects(file.method, series, file.is_cut, comment)


def _series(uid: str, parts: list[tuple[str, EventPart, WrittenEvent]], rules: Rules) -> Series:
    main = next((each for each in parts if not each[0]), None)
    only, part, event = main or parts[0]
    zone = part.zone
    others = [each for each in parts if each[0] and each[2] is not event][:MAX_OVERRIDES]
    overrides = [Override(_in_zone(each[2], zone, rules), each[1]) for each in others]
    named = {zone, *(each.part.zone for each in overrides)}
    if only:
        only = _in_zone(event, zone, rules)
    kept = {name: rules[name] for name in named if name in rules and known_zone(name) is None}
    lines = () if only else tuple(_lines(event))  # one occurrence does not repeat
    return Series(uid, part, lines, tuple(overrides), kept, only)


def _part(event: WrittenEvent, rules: Rules) -> EventPart | None:
    start = event.moment("DTSTART")
    if start is None or not FIRST_YEAR <= start.local.year <= LAST_YEAR:
        return None
    zone = _zone_of(start, rules)
    found = event.finished(EventFile(rules=rules))
    status, transparency = found.status.lower(), event.line("TRANSP").lower()
    return EventPart(
        start=start.written(),
        seconds=_seconds(event, start, rules),
        zone=zone,
        summary=found.summary,
        description=writable(found.description),
        location=found.location,
        url=found.join_url or event.line("URL"),
        status=status if status in STATUSES else "confirmed",
        transparency="transparent" if transparency == "transparent" else "opaque",
        organizer=found.organizer,
        attendees=tuple(event.all_attendees),
        sequence=found.sequence,
    )


def _zone_of(moment: WrittenMoment, rules: Rules) -> str:
    """Return the name of the zone; "" for a day, a floating time, and an unknown zone."""
    if moment.is_day or not moment.zone:
        return ""
    known = known_zone(moment.zone)
    if known is not None:
        return known.key
    return moment.zone if utc_offset(moment.local, moment.zone, rules) is not None else ""


def _seconds(event: WrittenEvent, start: WrittenMoment, rules: Rules) -> int:
    """Return the length. A duration in days keeps the time of day; both are bounded, and none is negative."""
    end = event.moment("DTEND")
    if end is not None and end.is_day == start.is_day:
        begins, ends = (each.at(rules) for each in (start, end))
        known = begins is not None and ends is not None
        length = timedelta(milliseconds=ends - begins) if known else end.local - start.local  # type: ignore[operator]
    elif "DURATION" in event.values:
        length = read_duration(event.values["DURATION"].value) or timedelta()
    else:
        length = timedelta(days=1) if start.is_day else timedelta()
    length = min(max(length, timedelta()), MAX_LENGTH)
    return max(length.days, 1) * 86400 if start.is_day else int(length.total_seconds())


def _in_zone(event: WrittenEvent, zone: str, rules: Rules) -> str:
    """Return its RECURRENCE-ID as a local time of the zone of the series."""
    moment = event.moment("RECURRENCE-ID")
    if moment is None:
        return ""
    at = moment.at(rules)
    return moment.written() if at is None or not zone else to_local(at, zone, rules).isoformat()


def recurrence_id_of(line: ContentLine, series: Series) -> str:
    """Return what a RECURRENCE-ID names, as the exceptions of this series are named."""
    event = WrittenEvent(values={"RECURRENCE-ID": line})
    return _in_zone(event, series.part.zone, series.zone_rules)


def _lines(event: WrittenEvent) -> Iterator[str]:
    """Yield RRULE, RDATE and EXDATE as written; a rule that cannot be read does not count."""
    for line in event.repeats[:MAX_LINES]:
        value = line.value.strip()[:LONGEST_LINE]
        given = "".join(
            f";{name}={line.parameters[name]}" for name in ("TZID", "VALUE") if name in line.parameters
        )
        if line.name == "RRULE":
            try:
                read_rule(value)
            except ValueError:
                continue
            yield f"RRULE:{value}"
        elif all(letter.isprintable() for letter in given + value):
            yield f"{line.name}{given}:{value}"


def to_moment(local: datetime, zone: str, rules: Rules, floating: str) -> int:
    """Return milliseconds UTC of a local time; a floating one is taken in the zone `floating`."""
    offset = utc_offset(local, zone or floating, rules)
    return (local - EPOCH - (offset or timedelta())) // timedelta(milliseconds=1)


def to_local(moment: int, zone: str, rules: Rules) -> datetime:
    """Return the local time of a moment, by the offset that the rules give for that time."""
    utc = EPOCH + timedelta(milliseconds=moment)
    known = known_zone(zone)
    if known is not None:
        return utc.replace(tzinfo=UTC).astimezone(known).replace(tzinfo=None)
    first = utc_offset(utc, zone, rules) or timedelta()
    return utc + (utc_offset(utc + first, zone, rules) or timedelta())


def zone_of(name: str) -> ZoneInfo:
    return known_zone(name) or ZoneInfo("UTC")


def occurrences(
    series: Series, since: int, until: int, most: int, floating: str = "UTC", steps: StepBudget | None = None
) -> list[EventTime]:
    """Return when a series takes place between two moments, oldest first, at most `most` times."""
    since, until = max(since, EARLIEST), min(until, LATEST)
    reader = _Expansion(series, floating, steps or StepBudget())
    found: dict[int, EventTime] = {}
    for start in reader.starts(since, until):
        each = reader.at(start, series.part.seconds, start, -1)
        if each.starts_at >= until:
            break
        if each.ends_at > since or each.starts_at >= since:
            found[each.starts_at] = each
        if len(found) >= most:
            break
    for override in series.overrides:
        original = (
            reader.moment(datetime.fromisoformat(override.recurrence_id), series.part)
            if override.recurrence_id
            else None
        )
        if original is not None:
            found.pop(original, None)
    changed = [reader.of_override(number) for number in range(len(series.overrides))]
    taken = (
        each
        for each in changed
        if each is not None and each.starts_at < until and (each.ends_at > since or each.starts_at >= since)
    )
    return sorted((*found.values(), *taken), key=lambda each: each.starts_at)[:most]


class _Expansion(Struct):
    series: Series
    floating: str
    steps: StepBudget

    def moment(self, local: datetime, part: EventPart) -> int:
        return to_moment(local, part.zone, self.series.zone_rules, self.floating)

    def starts(self, since: int, until: int) -> Iterator[datetime]:
        """Yield local starts in order, each once, without those that are left out."""
        part, written = self.series.part, list(map(_split, self.series.lines))
        left_out = set(self._dates(written, "EXDATE"))
        first = part.local
        begin = to_local(since, part.zone or self.floating, self.series.zone_rules)
        begin -= timedelta(seconds=part.seconds) + timedelta(days=1)
        rules = [read_rule(line.value) for line in written if line.name == "RRULE"]
        ended = (self._until(times(rule, first, begin, self.steps), rule.until) for rule in rules)
        added = sorted(self._dates(written, "RDATE"))
        last = None
        for start in heapq.merge([first], *ended, added):
            if start != last and start not in left_out:
                yield start
            last = start

    def _until(self, found: Iterator[datetime], until: str) -> Iterator[datetime]:
        moment = WrittenMoment.read(until, "") if until else None
        if moment is None:
            yield from found
            return
        last = moment.local + timedelta(days=1, seconds=-1) if moment.is_day else moment.local
        if moment.zone == "UTC":
            at = to_moment(moment.local, "UTC", {}, "UTC")
            last = to_local(at, self.series.part.zone or self.floating, self.series.zone_rules)
        for each in found:
            if each > last:
                return
            yield each

    def _dates(self, written: list[ContentLine], name: str) -> Iterator[datetime]:
        """Yield dates in the local time of the series; a day leaves out its whole day."""
        part, number = self.series.part, 0
        for line in (line for line in written if line.name == name):
            for value in line.value.split(",", MAX_DATES):
                moment = WrittenMoment.read(value.partition("/")[0], line.parameters.get("TZID", ""))
                number += 1
                if moment is None or number > MAX_DATES:
                    continue
                if moment.is_day and not part.all_day:
                    yield datetime.combine(moment.local.date(), part.local.time())
                elif not moment.zone or not part.zone:
                    yield moment.local
                else:
                    at = to_moment(moment.local, moment.zone, self.series.zone_rules, self.floating)
                    yield to_local(at, part.zone, self.series.zone_rules)

    def at(self, start: datetime, seconds: int, named: datetime, number: int) -> EventTime:
        part = self.series.part if number < 0 else self.series.overrides[number].part
        begins = self.moment(start, part)
        if part.all_day:
            ends = self.moment(start + timedelta(seconds=seconds), part)
        else:
            ends = begins + seconds * 1000
        is_repeated = bool(self.series.lines or self.series.overrides)
        name = written(named, self.series.part.all_day) if is_repeated else self.series.only
        return EventTime(name, begins, max(ends, begins), number)

    def of_override(self, number: int) -> EventTime | None:
        override = self.series.overrides[number]
        if override.part.status == "cancelled" or not override.recurrence_id:
            return None
        named = datetime.fromisoformat(override.recurrence_id)
        return self.at(override.part.local, override.part.seconds, named, number)


def written(local: datetime, all_day: bool) -> str:
    return local.date().isoformat() if all_day else local.isoformat()


def _split(line: str) -> ContentLine:
    return next(content_lines(line.encode()), ContentLine("", {}, ""))


def end_of(part: EventPart) -> str:
    """Return the end as a day, or a local time, as far as the zone keeps its offset."""
    end = part.local + timedelta(seconds=part.seconds)
    return written(end, part.all_day)


def with_override(series: Series, override: Override) -> Series:
    """Return the series with this occurrence changed, in place of an earlier change of it."""
    others = tuple(each for each in series.overrides if each.recurrence_id != override.recurrence_id)
    return replace(series, overrides=(*others, override)[-MAX_OVERRIDES:])


def day_of(value: str) -> date:
    return date.fromisoformat(value[:10])
