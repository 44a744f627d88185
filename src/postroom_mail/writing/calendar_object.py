"""One event as a client keeps it in a calendar (RFC 4791, section 4.1): a series, and the client's own lines.

Nothing is cut or left out in silence, as in email: what cannot be kept is refused.
"""

import re
from collections.abc import Iterator

from msgspec import Struct, field

from postroom_mail.reading.calendar import ALL_DAY, JOIN_FIELDS
from postroom_mail.reading.content_lines import ContentLine, content_lines, unescaped
from postroom_mail.reading.recurrence import read_rule
from postroom_mail.reading.series import (
    LONGEST_LINE,
    MAX_LINES,
    MAX_OVERRIDES,
    Series,
    read_objects,
    recurrence_id_of,
)
from postroom_mail.writing import calendar_lines

MAX_KEPT_LINES = 500
MAX_KEPT_BYTES = 64 * 1024
MAX_DEPTH = 5
LONGEST = {"SUMMARY": 1_000, "LOCATION": 1_000, "URL": 1_000, "UID": 1_000, "DESCRIPTION": 20_000}
KEPT = frozenset(
    "ATTACH CATEGORIES CLASS COLOR COMMENT CONTACT CREATED GEO IMAGE PRIORITY RELATED-TO RESOURCES".split()
)
# They say again what other lines say, perhaps differently.
MEANT_ELSEWHERE = frozenset({"X-ALT-DESC", ALL_DAY, *JOIN_FIELDS})
_NAME = re.compile(r"[A-Z0-9-]{1,60}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class InvalidObject(ValueError):
    """`word` is the precondition of RFC 4791, section 5.3.2.1, that does not hold."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


class CalendarObject(Struct, frozen=True):
    """`kept` are lines by the exception they are in; "" is the series.

    `notified_by_client` are the addresses that the client notifies itself, or nobody does.
    """

    series: Series
    kept: dict[str, list[str]]
    notified_by_client: frozenset[str]


class _Component(Struct):
    name: str
    lines: list[ContentLine] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def read_object(raw: bytes) -> CalendarObject:
    """Return the one event of a calendar file. InvalidObject says why it cannot be kept."""
    events = list(_events(raw))
    for event in events:
        for line in event.lines:
            _require_kept_whole(line)
    objects = read_objects(raw)
    if len(objects.series) != 1 or not objects.series[0].uid:
        raise InvalidObject("valid-calendar-object-resource", "The file must hold one event, with one UID.")
    series = objects.series[0]
    if len(events) != len(series.overrides) + 1 or len(events) > MAX_OVERRIDES:
        reason = f"Each VEVENT needs a DTSTART, and at most {MAX_OVERRIDES} are exceptions."
        raise InvalidObject("valid-calendar-data", reason)
    kept = {_place(event, series): event.kept for event in events if event.kept}
    lines = [line for each in kept.values() for line in each]
    if len(lines) > MAX_KEPT_LINES or sum(map(len, lines)) > MAX_KEPT_BYTES:
        reason = (
            f"Alarms and additional fields have more than {MAX_KEPT_LINES} lines or {MAX_KEPT_BYTES} bytes."
        )
        raise InvalidObject("max-resource-size", reason)
    return CalendarObject(series, kept, frozenset(_notified_by_client(events)))


def _events(raw: bytes) -> Iterator[_Component]:
    """Yield the VEVENTs with their own lines; alarms inside are lines to keep."""
    open_names: list[str] = []
    event: _Component | None = None
    other = is_begun = False
    for line in content_lines(raw):
        name = line.value.strip().upper() if line.name in ("BEGIN", "END") else ""
        if not is_begun and (line.name, name) != ("BEGIN", "VCALENDAR"):
            raise InvalidObject("valid-calendar-data", "The file does not begin with BEGIN:VCALENDAR.")
        is_begun = True
        if line.name == "BEGIN":
            open_names.append(name)
            if len(open_names) > MAX_DEPTH:
                raise InvalidObject("valid-calendar-data", "The file nests too deeply.")
            if len(open_names) == 2 and name == "VEVENT":
                event = _Component(name)
                continue
            other |= len(open_names) == 2 and name != "VTIMEZONE"
        if event is not None:
            is_end = line.name == "END" and len(open_names) == 2
            _take(event, line, len(open_names) - 2 if not is_end else 0, name)
        if line.name == "END":
            if not open_names or open_names.pop() != name:
                raise InvalidObject("valid-calendar-data", f"END:{name[:40]} ends nothing that is open.")
            if event is not None and len(open_names) == 1:
                yield event
                event = None
    if open_names or not is_begun:
        raise InvalidObject("valid-calendar-data", "The file does not end with END:VCALENDAR.")
    if other:
        raise InvalidObject("supported-calendar-component", "This calendar takes events (VEVENT) only.")


def _take(event: _Component, line: ContentLine, depth: int, name: str) -> None:
    if line.name in ("BEGIN", "END"):
        if depth and _NAME.fullmatch(name):
            event.kept.append(f"{line.name}:{name}")
    elif depth or line.name in KEPT or (line.name[:2] == "X-" and line.name not in MEANT_ELSEWHERE):
        event.kept.append(_again(line))
    else:
        event.lines.append(line)


def _again(line: ContentLine) -> str:
    """Return the line as it was written, and still one line."""
    name = line.name if _NAME.fullmatch(line.name) else "X-UNKNOWN"
    given = (
        calendar_lines.parameter(each, value)
        for each, value in line.parameters.items()
        if _NAME.fullmatch(each)
    )
    return f"{name}{''.join(given)}:{_CONTROL.sub('', line.value)}"


def _place(event: _Component, series: Series) -> str:
    """Return the exception that it is; "" for the series, and for the one occurrence of the file."""
    line = next((each for each in event.lines if each.name == "RECURRENCE-ID"), None)
    named = "" if line is None else recurrence_id_of(line, series)
    return "" if named == series.only else named


def _require_kept_whole(line: ContentLine) -> None:
    longest = LONGEST.get(line.name)
    if longest is not None and len(unescaped(line.value)) > longest:
        reason = f"{line.name} has more than {longest} characters."
        raise InvalidObject("max-resource-size", reason)
    if line.name in ("RRULE", "RDATE", "EXDATE") and len(line.value) > LONGEST_LINE:
        reason = f"{line.name} has more than {LONGEST_LINE} characters."
        raise InvalidObject("max-resource-size", reason)
    if line.name == "RRULE":
        try:
            read_rule(line.value.strip())
        except ValueError as error:
            raise InvalidObject("valid-calendar-data", f"RRULE {error}.") from None


def _notified_by_client(events: list[_Component]) -> Iterator[str]:
    """Yield whom the client notifies itself, or nobody does (RFC 6638, 7.1)."""
    for event in events:
        if sum(line.name in ("RRULE", "RDATE", "EXDATE") for line in event.lines) > MAX_LINES:
            raise InvalidObject("max-resource-size", f"An event repeats by more than {MAX_LINES} lines.")
        for line in event.lines:
            if line.name in ("ATTENDEE", "ORGANIZER"):
                agent = line.parameters.get("SCHEDULE-AGENT", "SERVER").upper()
                if agent != "SERVER":
                    yield line.value.strip().lower().removeprefix("mailto:")
