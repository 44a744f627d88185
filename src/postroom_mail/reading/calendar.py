"""The appointment in a calendar file (RFC 5545, RFC 5546): what, when, where, and is an answer expected."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from postroom_mail.mime.charset import clean, clean_line
from postroom_mail.reading.content_lines import ContentLine, content_lines, unescaped
from postroom_mail.reading.time_zones import MAX_ONSETS, Observance, Rules, read_offset
from postroom_mail.reading.written_times import WrittenMoment, read_duration

MAX_EVENTS = 200
MAX_ATTENDEES = 1_000
MAX_NAMED_ATTENDEES = 50
MAX_KEPT_ATTENDEES = 500
MAX_LEFT_OUT = 200
MAX_OCCURRENCES = 50
MAX_ZONES = 100
MAX_OBSERVANCES = 200
MAX_LINE_CHARS = 1_000
MAX_DESCRIPTION_CHARS = 20_000
MAX_REPEATS = 200
REPEATS = frozenset({"RRULE", "RDATE", "EXDATE"})
APPOINTMENTS = frozenset({"VEVENT", "VTODO"})
ALL_DAY = "X-MICROSOFT-CDO-ALLDAYEVENT"
OBSERVANCES = frozenset({"STANDARD", "DAYLIGHT"})

_WEB_LINK = re.compile(r"https?://[^\s<>\"]{3,1900}", re.IGNORECASE)
_MEETING_LINK = re.compile(
    r"https://(?:[\w-]{1,60}\.){0,3}(?:zoom\.us/(?:j|my|w|s)/|teams\.microsoft\.com/(?:l/meetup-join|meet)/"
    r"|teams\.live\.com/meet/|meet\.google\.com/|webex\.com/(?:meet|join|\w{1,40}/j\.php)|whereby\.com/"
    r"|meet\.jit\.si/|bluejeans\.com/|gotomeeting\.com/join/|gotomeet\.me/|chime\.aws/)[^\s<>\"]{1,900}"
)
JOIN_FIELDS = ("CONFERENCE", "X-GOOGLE-CONFERENCE", "X-MICROSOFT-SKYPETEAMSMEETINGURL", "X-ZOOM-JOIN-URL")


class Attendee(Struct, rename="camel", frozen=True):
    """`participation_status` and `role` are the words of RFC 5545 (sections 3.2.12, 3.2.16) in lower case."""

    address: str
    name: str = ""
    participation_status: str = ""
    role: str = ""

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address


class Occurrence(Struct, rename="camel", frozen=True):
    """One of a series that differs from it: another time, or cancelled."""

    recurrence_id: str
    start: str
    end: str
    status: str


class Calendar(Struct, frozen=True):
    """An appointment. `start` and `end` are as written (ISO 8601); the moments are UTC, where known.

    `recurrence_id` is the start of the one occurrence that it is about, "" for the whole series.
    """

    method: str
    uid: str
    summary: str
    start: str
    end: str
    start_at: int | None
    end_at: int | None
    all_day: bool
    time_zone: str
    location: str
    organizer: str
    attendees: tuple[Attendee, ...]
    attendee_count: int
    answer_expected: bool
    recurrence: str
    status: str
    description: str
    recurrence_id: str = ""
    sequence: int = 0
    ex_dates: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    join_url: str = ""


def read_calendar(raw: bytes) -> Calendar | None:
    """Return the appointment of a calendar: the first that is no exception to a series. Never raises.

    Its exceptions in the same file are its `occurrences`.
    """
    file = EventFile.read(raw)
    draft = next((event for event in file.events if not event.is_exception), None)
    draft = draft or next(iter(file.events), None)
    if draft is None:
        return None
    found = draft.finished(file)
    others = [event for event in file.events if event is not draft and event.is_exception]
    same = [event for event in others if event.uid() == found.uid][:MAX_OCCURRENCES]
    return replace(found, occurrences=tuple(event.occurrence() for event in same))


def read_events(raw: bytes) -> Iterator[Calendar]:
    """Yield every appointment of a calendar, up to a limit."""
    file = EventFile.read(raw)
    return (event.finished(file) for event in file.events)


class EventFile(Struct):
    method: str = ""
    events: list["WrittenEvent"] = field(default_factory=list)
    rules: Rules = field(default_factory=dict)
    most: int = MAX_EVENTS
    is_cut: bool = False  # there are more

    @classmethod
    def read(cls, raw: bytes, most: int = MAX_EVENTS) -> "EventFile":
        file, reader = cls(most=most), _CalendarReader()
        for line in content_lines(raw):
            if line.name == "BEGIN":
                reader.begin(file, line.value.strip().upper())
            elif line.name == "END":
                reader.end(file, line.value.strip().upper())
            else:
                reader.take(file, line)
        return file


class _CalendarReader(Struct):
    """The state while reading the file. Parts of an appointment, such as alarms, are skipped."""

    event: "WrittenEvent | None" = None
    observance: Observance | None = None
    zone: str | None = None
    zone_observances: list[Observance] = field(default_factory=list)
    inner: int = 0

    def begin(self, file: EventFile, name: str) -> None:
        if self.event is not None:
            self.inner += 1
        elif name in APPOINTMENTS:
            self.event = WrittenEvent(name)
        elif name == "VTIMEZONE":
            self.zone, self.zone_observances = "", []
        elif name in OBSERVANCES and self.zone is not None:
            self.observance = Observance()

    def end(self, file: EventFile, name: str) -> None:
        if self.event is not None:
            self._end_inside_event(file)
        elif name in OBSERVANCES and self.observance is not None:
            if len(self.zone_observances) < MAX_OBSERVANCES:
                self.zone_observances.append(self.observance)
            self.observance = None
        elif name == "VTIMEZONE":
            if self.zone and len(file.rules) < MAX_ZONES:
                file.rules[self.zone] = self.zone_observances
            self.zone = None

    def _end_inside_event(self, file: EventFile) -> None:
        if self.inner:
            self.inner -= 1
            return
        if self.event is not None and len(file.events) < file.most:
            file.events.append(self.event)
        else:
            file.is_cut = True
        self.event = None

    def take(self, file: EventFile, line: ContentLine) -> None:
        if self.event is not None:
            if not self.inner:
                self.event.take(line)
        elif self.observance is not None:
            _observe(self.observance, line)
        elif self.zone is not None:
            if line.name == "TZID":
                self.zone = unescaped(line.value[:400]).strip()[:200]
        elif line.name == "METHOD" and not file.method:
            file.method = _line(line.value).upper()


def _observe(observance: Observance, line: ContentLine) -> None:
    if line.name == "TZOFFSETTO":
        observance.offset = read_offset(line.value)
    elif line.name == "TZOFFSETFROM":
        observance.offset_before = read_offset(line.value)
    elif line.name == "RRULE":
        pairs = (part.partition("=") for part in line.value[:MAX_LINE_CHARS].upper().split(";"))
        observance.rule = {name: value for name, _, value in pairs}
    elif line.name in ("DTSTART", "RDATE") and len(observance.onsets) < MAX_ONSETS:
        written = (WrittenMoment.read(value, "") for value in line.value.split(",")[:MAX_ONSETS])
        observance.onsets += (moment.local for moment in written if moment is not None)


class WrittenEvent(Struct):
    kind: str = "VEVENT"
    values: dict[str, ContentLine] = field(default_factory=dict)
    all_attendees: list[Attendee] = field(default_factory=list)
    attendee_count: int = 0
    is_answer_asked: bool = False
    left_out: list[str] = field(default_factory=list)
    repeats: list[ContentLine] = field(default_factory=list)  # RRULE, RDATE and EXDATE

    @property
    def is_exception(self) -> bool:
        return "RECURRENCE-ID" in self.values

    def take(self, line: ContentLine) -> None:
        if line.name in REPEATS and len(self.repeats) < MAX_REPEATS:
            self.repeats.append(line)
        if line.name == "ATTENDEE":
            self._attend(line)
        elif line.name == "EXDATE":
            self._leave_out(line)
        else:
            self.values.setdefault(line.name, line)

    def _leave_out(self, line: ContentLine) -> None:
        room = MAX_LEFT_OUT - len(self.left_out)
        moments = (WrittenMoment.read(value, "") for value in line.value.split(",", room)[:room])
        self.left_out += (moment.written() for moment in moments if moment is not None)

    def uid(self) -> str:
        return self.line("UID")

    def occurrence(self) -> Occurrence:
        start = self.moment("DTSTART")
        end = self._end(start)
        return Occurrence(
            self.recurrence_id(),
            start.written() if start else "",
            end.written() if end else "",
            self.line("STATUS").upper(),
        )

    def recurrence_id(self) -> str:
        moment = self.moment("RECURRENCE-ID")
        return moment.written() if moment else ""

    def _sequence(self) -> int:
        written = self.line("SEQUENCE")
        return int(written) if written.isdecimal() and len(written) < 10 else 0

    def _join_url(self) -> str:
        """Return the link of a video meeting, from its own field, the location or the description."""
        for name in JOIN_FIELDS:
            line = self.values.get(name)
            if line is not None and _WEB_LINK.fullmatch(line.value.strip()[:MAX_LINE_CHARS]):
                return clean_line(line.value.strip())
        said = f"{self.line('LOCATION')} {self.line('URL')} {self.text_of('DESCRIPTION')}"
        found = _MEETING_LINK.search(said)
        return clean_line(found[0]) if found else ""

    def _attend(self, line: ContentLine) -> None:
        if self.attendee_count >= MAX_ATTENDEES:
            return
        self.attendee_count += 1
        asked = line.parameters.get("RSVP", "").upper()
        waits = line.parameters.get("PARTSTAT", "").upper() == "NEEDS-ACTION"
        self.is_answer_asked |= asked == "TRUE" or (not asked and waits)
        if len(self.all_attendees) < MAX_KEPT_ATTENDEES:
            self.all_attendees.append(_attendee(line))

    def finished(self, file: EventFile) -> Calendar:
        start = self.moment("DTSTART")
        end = self._end(start)
        status = self.line("STATUS").upper()
        is_open = file.method == "REQUEST" and status != "CANCELLED"
        return Calendar(
            method=file.method,
            uid=self.line("UID"),
            summary=self.line("SUMMARY"),
            start=start.written() if start else "",
            end=end.written() if end else "",
            start_at=start.at(file.rules) if start else None,
            end_at=end.at(file.rules) if end else None,
            all_day=start.is_day if start else False,
            time_zone=clean_line(start.zone) if start else "",
            location=self.line("LOCATION"),
            organizer=_person(self.values["ORGANIZER"]) if "ORGANIZER" in self.values else "",
            attendees=tuple(self.all_attendees[:MAX_NAMED_ATTENDEES]),
            attendee_count=self.attendee_count,
            answer_expected=is_open and self.is_answer_asked,
            recurrence=self.line("RRULE"),
            status=status,
            description=self.text_of("DESCRIPTION"),
            recurrence_id=self.recurrence_id(),
            sequence=self._sequence(),
            ex_dates=tuple(self.left_out),
            join_url=self._join_url(),
        )

    def line(self, name: str) -> str:
        return _line(unescaped(self.values[name].value[: 2 * MAX_LINE_CHARS])) if name in self.values else ""

    def text_of(self, name: str) -> str:
        written = self.values[name].value[: 2 * MAX_DESCRIPTION_CHARS] if name in self.values else ""
        return clean(unescaped(written))[:MAX_DESCRIPTION_CHARS].strip()

    def moment(self, name: str) -> WrittenMoment | None:
        line = self.values.get(name)
        if line is None:
            return None
        # RFC 5545, 3.2.19: a parameter has no escapes, but some programs write one before a comma.
        moment = WrittenMoment.read(line.value, unescaped(line.parameters.get("TZID", "")[:400]))
        is_day = line.parameters.get("VALUE", "").upper() == "DATE" or self._is_marked_as_day()
        return moment.as_day() if moment and is_day else moment

    def _is_marked_as_day(self) -> bool:
        return ALL_DAY in self.values and self.values[ALL_DAY].value.strip().upper() == "TRUE"

    def _end(self, start: WrittenMoment | None) -> WrittenMoment | None:
        """Return the end as written, else from the duration, else the day itself (RFC 5545, 3.6.1)."""
        if (end := self.moment("DTEND") or self.moment("DUE")) is not None or start is None:
            return end
        if "DURATION" in self.values:
            duration = read_duration(self.values["DURATION"].value)
            return start.after(duration) if duration is not None else None
        return start.after(timedelta(days=1)) if start.is_day else start


def _line(text: str) -> str:
    return clean_line(text[:MAX_LINE_CHARS])


def _person(line: ContentLine) -> str:
    """Return the address with the name before it, if any."""
    return str(_attendee(line))


def _attendee(line: ContentLine) -> Attendee:
    address = _line(line.value)
    address = address[7:].lstrip() if address[:7].lower() == "mailto:" else address
    name = _line(line.parameters.get("CN", ""))
    return Attendee(
        address,
        name if name != address else "",
        _line(line.parameters.get("PARTSTAT", "")).lower(),
        _line(line.parameters.get("ROLE", "")).lower(),
    )


def last_day(calendar: Calendar) -> str:
    """Return the last day of an all-day appointment, whose `end` is the day after it (RFC 5545, 3.6.1)."""
    try:
        return (date.fromisoformat(calendar.end) - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return calendar.end
