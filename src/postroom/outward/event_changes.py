"""What a change makes of a series: of one occurrence, of one and all that follow, or of all of it."""

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from postroom.clock import DAY
from postroom.events import kinds
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.reading.series import (
    EARLIEST,
    EventPart,
    EventTime,
    Override,
    Series,
    occurrences,
    to_moment,
    with_override,
)
from postroom_mail.writing.invitation import CANCEL, REQUEST
from postroom_mail.writing.series_file import EventMail, part_of

THIS, FOLLOWING, ALL = "this", "following", "all"
CANCELLED = "cancelled"
COUNTED = 20_000  # occurrences before the one from which a series is split


class CalendarFileOfClient(Struct, frozen=True):
    """The name that a CalDAV client gave to an event, and the lines that it keeps there, as JSON."""

    name: str
    kept_lines: str | None


class EventChange(Struct, frozen=True):
    """What is to become of an event: `series` is all of it, and `mail` the email to its attendees.

    `event_id` is "" for a new one; else `version` is the one that the change was made from.
    """

    calendar_id: str
    series: Series
    kind: str
    event_id: str = ""
    version: int = 0
    is_exclusive: bool = False  # refused where somebody's time is taken already
    mail: EventMail | None = None
    is_notice: bool = False  # only an email: nothing changes in the calendar
    also: tuple["EventChange", ...] = ()  # that nobody is notified of, in the same transaction
    file: CalendarFileOfClient | None = None

    @property
    def is_off(self) -> bool:
        return self.kind == kinds.CALENDAR_CANCELLED

    @property
    def words(self) -> str:
        return "" if self.mail is None else self.mail.words


class Changed(Struct, frozen=True):
    """The series after a change, the email to attendees, and a second series where it was split."""

    series: Series
    mail: EventMail
    rest: Series | None = None


def find_occurrence(series: Series, calendar: InboxCalendar, named: str) -> EventTime | None:
    """Return the occurrence of a recurrenceId, as the API writes it. ValueError if that is no time."""
    at = moment_of(series, calendar, named)
    around = occurrences(
        replace(series, overrides=()), at - DAY, at + DAY, 200, calendar.time_zone, StepBudget()
    )
    return next((each for each in around if each.starts_at == at), None)


def moment_of(series: Series, calendar: InboxCalendar, named: str) -> int:
    given = datetime.fromisoformat(named)
    if given.tzinfo is not None:
        return int(given.timestamp() * 1000)
    return to_moment(given, series.part.zone, series.zone_rules, calendar.time_zone)


def change_all(series: Series, fields: dict[str, Any], lines: tuple[str, ...] | None) -> Changed:
    """Change the whole series. A new start or rule ends the exceptions, which had other times."""
    part = _next(series.part, fields)
    keeps = part.start == series.part.start and part.zone == series.part.zone and lines is None
    changed = replace(
        series,
        part=part,
        lines=series.lines if lines is None else lines,
        overrides=tuple(_in_all(each, fields) for each in series.overrides) if keeps else (),
    )
    return Changed(changed, EventMail(REQUEST, changed))


def _in_all(override: Override, fields: dict[str, Any]) -> Override:
    same = {name: value for name, value in fields.items() if name not in ("start", "seconds", "zone")}
    return replace(override, part=_next(override.part, same))


def _next(part: EventPart, fields: dict[str, Any]) -> EventPart:
    return replace(part, sequence=part.sequence + 1, **fields)


def change_this(series: Series, at: EventTime, fields: dict[str, Any]) -> Changed:
    part = _next(part_at(series, at), fields)
    changed = with_override(series, Override(at.recurrence_id, part))
    return Changed(changed, EventMail(REQUEST, changed, at.recurrence_id))


def part_at(series: Series, at: EventTime) -> EventPart:
    known = part_of(series, at.recurrence_id)
    return known if known is not series.part else replace(known, start=at.recurrence_id)


def change_following(
    series: Series, at: EventTime, fields: dict[str, Any], lines: tuple[str, ...] | None, uid: str
) -> Changed:
    """End the series before the occurrence, and begin another with it."""
    ended = end_before(series, at)
    start = {"start": at.recurrence_id} | fields
    part = replace(series.part, sequence=0, **start)
    later = tuple(each for each in series.overrides if each.recurrence_id > at.recurrence_id)
    keeps = part.start == at.recurrence_id and lines is None
    rest = Series(
        uid,
        part,
        _rest_of(series, at) if lines is None else lines,
        later if keeps else (),
        series.zone_rules,
    )
    return Changed(ended, EventMail(REQUEST, ended), rest)


def cancel_all(series: Series) -> Changed:
    off = replace(series, part=_next(series.part, {"status": CANCELLED}))
    return Changed(off, EventMail(CANCEL, off))


def cancel_this(series: Series, at: EventTime) -> Changed:
    part = _next(part_at(series, at), {"status": CANCELLED})
    changed = with_override(series, Override(at.recurrence_id, part))
    return Changed(changed, EventMail(CANCEL, changed, at.recurrence_id))


def cancel_following(series: Series, at: EventTime) -> Changed:
    ended = end_before(series, at)
    return Changed(ended, EventMail(REQUEST, ended))


def end_before(series: Series, at: EventTime) -> Series:
    """Return the series without this occurrence and all later ones."""
    if series.part.all_day:
        until = (datetime.fromisoformat(at.recurrence_id) - timedelta(days=1)).strftime("%Y%m%d")
    else:
        until = _utc(at.starts_at - 1000)
    lines = tuple(_with_end(line, f"UNTIL={until}") for line in series.lines if not line.startswith("RDATE"))
    earlier = tuple(each for each in series.overrides if each.recurrence_id < at.recurrence_id)
    return replace(series, part=_next(series.part, {}), lines=lines, overrides=earlier)


def _utc(moment: int) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(milliseconds=moment):%Y%m%dT%H%M%SZ}"  # noqa: DTZ001


def _with_end(line: str, end: str) -> str:
    if not line.startswith("RRULE:"):
        return line
    kept = [part for part in line.split(";") if not part.upper().startswith(("UNTIL=", "COUNT="))]
    return ";".join([*kept, end] if end else kept)


def _rest_of(series: Series, at: EventTime) -> tuple[str, ...]:
    """Return the lines of the series from the occurrence on. COUNT is what is left of it."""
    found = []
    for line in series.lines:
        count = next((part for part in line.upper().split(";") if part.startswith("COUNT=")), "")
        if not line.startswith("RRULE:") or not count:
            found.append(line)
            continue
        plain = replace(series, lines=(line,), overrides=())
        before = len(occurrences(plain, EARLIEST, at.starts_at, COUNTED))
        found.append(_with_end(line, f"COUNT={max(int(count[6:]) - before, 1)}"))
    return tuple(found)
