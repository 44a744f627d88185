"""An answer to an invitation (RFC 5546, 3.2.3), which identifies the appointment as it was written.

The invitation is a stranger's: only known lines of it are copied, one by one and without control
characters.
"""

import re

from msgspec import Struct, field

from postroom_mail.mime.address import Address
from postroom_mail.reading.content_lines import ContentLine, content_lines, unescaped
from postroom_mail.writing import calendar_lines
from postroom_mail.writing.invitation import REPLY, REQUEST, CalendarFile, CalendarSender, in_calendar

MAX_BYTES = 256 * 1024
MAX_VALUE_CHARS = 1_000
MAX_ZONES = 20
MAX_ZONE_LINES = 200
MAX_ATTENDEES = 1_000
TAKEN_OVER = ("UID", "SEQUENCE", "RECURRENCE-ID", "DTSTART", "DTEND", "DURATION", "SUMMARY", "ORGANIZER")
PARAMETERS_TAKEN_OVER = frozenset({"TZID", "VALUE", "RANGE", "CN"})
OF_A_ZONE = frozenset({"TZID", "DTSTART", "RRULE", "RDATE", "TZOFFSETFROM", "TZOFFSETTO", "TZNAME"})
ZONE_PARTS = frozenset({"STANDARD", "DAYLIGHT"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Invited(Struct, frozen=True):
    """The appointment of an invitation, by the lines that identify it."""

    lines: dict[str, ContentLine]
    zones: dict[str, tuple[str, ...]]
    attendees: tuple[str, ...]
    raw: bytes = b""  # the whole file

    @property
    def summary(self) -> str:
        line = self.lines.get("SUMMARY")
        return "" if line is None else _CONTROL.sub(" ", unescaped(line.value[:MAX_VALUE_CHARS])).strip()

    @property
    def organizer(self) -> str:
        line = self.lines.get("ORGANIZER")
        return "" if line is None else _mailto(line)


class CalendarAnswer(Struct, frozen=True):
    """`status` is a term of RFC 5545, 3.2.12: ACCEPTED, DECLINED or TENTATIVE.

    `only` names the one occurrence of a series that is answered.
    """

    invited: Invited
    status: str
    attendee: str
    comment: str = ""
    only: str = ""


class _InvitedEvent(Struct):
    lines: dict[str, ContentLine] = field(default_factory=dict)
    attendees: list[str] = field(default_factory=list)


def find_invitation(raw: bytes) -> Invited | None:
    """Return the first that is no exception to a series, if the file asks for an answer at all."""
    reader = _InvitationReader()
    for line in content_lines(raw[:MAX_BYTES]):
        reader.take(line)
    answerable = [event for event in reader.events if "UID" in event.lines and "ORGANIZER" in event.lines]
    if reader.method != REQUEST or not answerable:
        return None
    event = next((each for each in answerable if "RECURRENCE-ID" not in each.lines), answerable[0])
    named = {line.parameters.get("TZID", "") for line in event.lines.values()}
    zones = {name: tuple(lines) for name, lines in reader.zones.items() if name in named}
    return Invited(event.lines, zones, tuple(event.attendees), raw[:MAX_BYTES])


class _InvitationReader(Struct):
    method: str = ""
    events: list[_InvitedEvent] = field(default_factory=list)
    zones: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    zone: list[str] = field(default_factory=list)
    zone_name: str = ""

    def take(self, line: ContentLine) -> None:
        if line.name == "BEGIN":
            self._begin(line.value.strip().upper())
        elif line.name == "END":
            self._end(line.value.strip().upper())
        elif self.open[-1:] == ["VEVENT"]:
            self._take_of_event(line)
        elif "VTIMEZONE" in self.open:
            self._take_of_zone(line)
        elif line.name == "METHOD" and not self.method:
            self.method = line.value.strip().upper()

    def _begin(self, name: str) -> None:
        self.open = [*self.open[-10:], name]
        if name == "VEVENT":
            self.events = [*self.events[:10], _InvitedEvent()]
        elif name == "VTIMEZONE":
            self.zone, self.zone_name = [], ""
        elif name in ZONE_PARTS:
            self.zone.append(f"BEGIN:{name}")

    def _end(self, name: str) -> None:
        if self.open:
            self.open = self.open[:-1]
        if name in ZONE_PARTS:
            self.zone.append(f"END:{name}")
        elif name == "VTIMEZONE" and self.zone_name and self._is_short():
            whole = ["BEGIN:VTIMEZONE", *self.zone, "END:VTIMEZONE"]
            self.zones.setdefault(self.zone_name, whole)

    def _is_short(self) -> bool:
        return len(self.zone) < MAX_ZONE_LINES and len(self.zones) < MAX_ZONES

    def _take_of_event(self, line: ContentLine) -> None:
        event = self.events[-1]
        if line.name in TAKEN_OVER:
            event.lines.setdefault(line.name, line)
        elif line.name == "ATTENDEE" and len(event.attendees) < MAX_ATTENDEES:
            event.attendees.append(_mailto(line))

    def _take_of_zone(self, line: ContentLine) -> None:
        if line.name not in OF_A_ZONE or len(self.zone) >= MAX_ZONE_LINES:
            return
        if line.name == "TZID":
            self.zone_name = line.value.strip()
        self.zone.append(_again(line))


def write(answer: CalendarAnswer, sender: CalendarSender) -> CalendarFile:
    lines = answer.invited.lines
    event = [
        "BEGIN:VEVENT",
        *(_again(lines[name]) for name in TAKEN_OVER if name in lines),
        f"DTSTAMP:{calendar_lines.stamp(sender.sent_at)}",
        calendar_lines.person(
            "ATTENDEE", Address(sender.address.name, answer.attendee), f";PARTSTAT={answer.status}"
        ),
        calendar_lines.text("COMMENT", answer.comment) if answer.comment else "",
        "END:VEVENT",
    ]
    zones = [line for zone in answer.invited.zones.values() for line in zone]
    return in_calendar(REPLY, [*zones, *filter(None, event)])


def _again(line: ContentLine) -> str:
    """Return its original value, already escaped, and still one line."""
    given = [
        calendar_lines.parameter(name, value[:MAX_VALUE_CHARS])
        for name, value in line.parameters.items()
        if name in PARAMETERS_TAKEN_OVER
    ]
    return f"{line.name}{''.join(given)}:{_CONTROL.sub('', line.value[:MAX_VALUE_CHARS])}"


def _mailto(line: ContentLine) -> str:
    value = _CONTROL.sub("", line.value[:MAX_VALUE_CHARS]).strip()
    return value[7:].lstrip() if value[:7].lower() == "mailto:" else value
