"""Filters of a calendar-query (RFC 4791, section 9.7), held against the lines of a calendar file."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from postroom.caldav.xml_reading import XmlElement
from postroom.caldav.xml_writing import c
from postroom.errors import BadRequest
from postroom_mail.reading.content_lines import ContentLine, content_lines, unescaped
from postroom_mail.reading.series import EARLIEST, LATEST

MOST_FILTERS = 50


class TimeRange(Struct, frozen=True):
    since: int = EARLIEST
    until: int = LATEST


class TextMatch(Struct, frozen=True):
    wanted: str
    is_exact: bool  # case counts
    negates: bool

    def fits(self, value: str) -> bool:
        held, wanted = (value, self.wanted) if self.is_exact else (value.lower(), self.wanted.lower())
        return (wanted in held) != self.negates


class LineFilter(Struct, frozen=True):
    """Of a property, or of a parameter of one (`of_parameters`)."""

    name: str
    is_absent: bool = False
    text: TextMatch | None = None
    of_parameters: tuple["LineFilter", ...] = ()


class PartFilter(Struct, frozen=True):
    name: str
    is_absent: bool = False
    lines: tuple[LineFilter, ...] = ()
    parts: tuple["PartFilter", ...] = ()


class EventQuery(Struct, frozen=True):
    """`event` filters VEVENTs; None: another kind of object is asked for, of which there are none."""

    event: PartFilter | None
    time: TimeRange | None = None
    calendar: tuple[LineFilter, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Return whether no content has to be read for it."""
        event = self.event
        return not self.calendar and (event is None or not (event.is_absent or event.lines or event.parts))

    @property
    def uid(self) -> str:
        """The UID that it is about, as far as that finds it fast."""
        lines = () if self.event is None else self.event.lines
        matches = (each.text for each in lines if each.name == "UID" and each.text is not None)
        return next((each.wanted for each in matches if not each.negates), "")


def read_query(query: XmlElement) -> EventQuery:
    """Raises BadRequest for a filter that is not one."""
    given = query.child(c("filter"))
    outer = None if given is None else given.child(c("comp-filter"))
    if outer is None or outer.attributes.get("name", "").upper() != "VCALENDAR":
        raise BadRequest("A calendar-query needs a filter with a comp-filter of VCALENDAR.")
    inner = list(outer.all(c("comp-filter")))
    lines = tuple(map(_line, outer.all(c("prop-filter"))))
    if not inner:
        return EventQuery(PartFilter("VEVENT"), calendar=lines)
    if len(inner) > MOST_FILTERS:
        raise BadRequest(f"A filter has more than {MOST_FILTERS} parts.")
    event = next((each for each in inner if each.attributes.get("name", "").upper() == "VEVENT"), None)
    if event is None:
        wants_others = any(each.child(c("is-not-defined")) is None for each in inner)
        return EventQuery(None if wants_others else PartFilter("VEVENT"), calendar=lines)
    return EventQuery(_part(event), read_range(event.child(c("time-range"))), lines)


def _part(given: XmlElement) -> PartFilter:
    return PartFilter(
        given.attributes.get("name", "").upper(),
        given.child(c("is-not-defined")) is not None,
        tuple(map(_line, list(given.all(c("prop-filter")))[:MOST_FILTERS])),
        tuple(map(_part, list(given.all(c("comp-filter")))[:MOST_FILTERS])),
    )


def _line(given: XmlElement) -> LineFilter:
    match = given.child(c("text-match"))
    found = None
    if match is not None:
        collation = match.attributes.get("collation", "i;ascii-casemap")
        negates = match.attributes.get("negate-condition", "no") == "yes"
        found = TextMatch(match.text, collation == "i;octet", negates)
    return LineFilter(
        given.attributes.get("name", "").upper(),
        given.child(c("is-not-defined")) is not None,
        found,
        tuple(map(_line, list(given.all(c("param-filter")))[:MOST_FILTERS])),
    )


def read_range(given: XmlElement | None) -> TimeRange | None:
    if given is None:
        return None
    since, until = (given.attributes.get(name) for name in ("start", "end"))
    found = TimeRange(
        EARLIEST if since is None else read_moment(since), LATEST if until is None else read_moment(until)
    )
    if found.since >= found.until:
        raise BadRequest("A time-range must end after it starts.")
    return found


def read_moment(written: str) -> int:
    try:
        moment = datetime.strptime(written, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        message = f"A time must be in UTC such as 20261120T150000Z: {written[:40]!r}."
        raise BadRequest(message) from None
    return int(moment.timestamp()) * 1000


class FilePart(Struct):
    name: str
    lines: list[ContentLine]
    parts: list["FilePart"]


def read_parts(content: bytes) -> list[FilePart]:
    """Return the VEVENTs of a file that we wrote, with their alarms."""
    outer = FilePart("", [], [])
    opened = [outer]
    for line in content_lines(content):
        if line.name == "BEGIN":
            inner = FilePart(line.value, [], [])
            opened[-1].parts.append(inner)
            opened.append(inner)
        elif line.name == "END":
            opened.pop()
        else:
            opened[-1].lines.append(line)
    return [part for calendar in outer.parts for part in calendar.parts if part.name == "VEVENT"]


def fits(query: EventQuery, content: bytes) -> bool:
    if query.event is None or query.event.is_absent:
        return False
    parts = read_parts(content)
    return any(_fits_part(query.event, part) for part in parts)


def _fits_part(wanted: PartFilter, part: FilePart) -> bool:
    if not all(_fits_line(each, part.lines) for each in wanted.lines):
        return False
    for each in wanted.parts:
        named = [inner for inner in part.parts if inner.name == each.name]
        if each.is_absent:
            if named:
                return False
        elif not any(_fits_part(each, inner) for inner in named):
            return False
    return True


def _fits_line(wanted: LineFilter, lines: Sequence[ContentLine]) -> bool:
    named = [line for line in lines if line.name == wanted.name]
    if wanted.is_absent:
        return not named
    return any(_fits_value(wanted, line) for line in named)


def _fits_value(wanted: LineFilter, line: ContentLine) -> bool:
    if wanted.text is not None and not wanted.text.fits(unescaped(line.value)):
        return False
    for each in wanted.of_parameters:
        value = line.parameters.get(each.name)
        if each.is_absent:
            if value is not None:
                return False
        elif value is None or (each.text is not None and not each.text.fits(value)):
            return False
    return True
