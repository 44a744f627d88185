"""A time zone in a calendar file (RFC 5545, section 3.6.5), for readers that know no names.

Summer time with a yearly rule is written as that rule, as Outlook requires; any other is listed.
"""

import calendar as months
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from msgspec import Struct

from postroom_mail.writing import calendar_lines

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
YEARS_LISTED = 11
FIRST_YEAR, LAST_YEAR = 1900, 2200
LONG_AGO = "19700101T000000"


class Onset(Struct, frozen=True):
    """When another offset begins, in the local time before it."""

    local: datetime
    offset_before: timedelta
    offset: timedelta
    name: str
    is_summer: bool


@lru_cache(maxsize=256)
def zone_lines(name: str, year: int) -> tuple[str, ...]:
    """Return the lines of a zone, valid for this year and ten after it."""
    zone, first = ZoneInfo(name), min(max(year, FIRST_YEAR), LAST_YEAR) - 1
    onsets = [_onsets(zone, each) for each in range(first, first + YEARS_LISTED + 1)]
    found = [each for of_year in onsets for each in of_year]
    inner = _by_rule(onsets) or [line for each in found for line in _observance(each)]
    inner = inner if found else _unchanging(zone, first)
    head = ["BEGIN:VTIMEZONE", calendar_lines.text("TZID", name)]
    return (*head, *inner, "END:VTIMEZONE")


def _onsets(zone: ZoneInfo, year: int) -> list[Onset]:
    start = datetime(year, 1, 1, tzinfo=UTC)
    days = [start + timedelta(days=number) for number in range(367)]
    changes = [
        (before, after)
        for before, after in pairwise(days)
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset()
    ]
    return [_onset(zone, before, after) for before, after in changes if before.year == year]


def _onset(zone: ZoneInfo, before: datetime, after: datetime) -> Onset:
    """Find the onset to the second, by bisecting the day."""
    earlier = _offset(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if _offset(zone, middle) == earlier:
            before = middle
        else:
            after = middle
    local = after.astimezone(zone)
    return Onset(
        local=(after + earlier).replace(tzinfo=None),
        offset_before=earlier,
        offset=_offset(zone, after),
        name=local.tzname() or "",
        is_summer=_offset(zone, after) > earlier,
    )


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _by_rule(onsets: list[list[Onset]]) -> list[str]:
    """Return the lines by a rule; none if the zone does not change twice a year by one."""
    if any(len(of_year) != 2 for of_year in onsets):
        return []
    pairs = list(zip(*onsets, strict=True))
    rules = [_rule(list(pair)) for pair in pairs]
    if not all(rules):
        return []
    return [
        line
        for pair, rule in zip(pairs, rules, strict=True)
        for line in _observance(pair[0], f"RRULE:FREQ=YEARLY;BYMONTH={pair[0].local.month};BYDAY={rule}")
    ]


def _rule(onsets: list[Onset]) -> str:
    """Return `2SU` or `-1SU`, if it is the same in every year."""
    alike = {
        (each.local.month, each.local.weekday(), each.local.time(), each.offset, each.offset_before)
        for each in onsets
    }
    if len(alike) > 1:
        return ""
    day = DAYS[onsets[0].local.weekday()]
    places = {(each.local.day - 1) // 7 + 1 for each in onsets}
    if len(places) == 1:
        return f"{places.pop()}{day}"
    is_last = all(each.local.day + 7 > _length(each.local) for each in onsets)
    return f"-1{day}" if is_last else ""


def _length(moment: datetime) -> int:
    return months.monthrange(moment.year, moment.month)[1]


def _observance(onset: Onset, *rule: str) -> list[str]:
    kind = "DAYLIGHT" if onset.is_summer else "STANDARD"
    return [
        f"BEGIN:{kind}",
        f"DTSTART:{onset.local:%Y%m%dT%H%M%S}",
        f"TZOFFSETFROM:{_written(onset.offset_before)}",
        f"TZOFFSETTO:{_written(onset.offset)}",
        calendar_lines.text("TZNAME", onset.name),
        *rule,
        f"END:{kind}",
    ]


def _unchanging(zone: ZoneInfo, year: int) -> list[str]:
    moment = datetime(year, 1, 1, tzinfo=UTC)
    offset = _written(_offset(zone, moment))
    name = calendar_lines.text("TZNAME", moment.astimezone(zone).tzname() or "")
    inner = [f"DTSTART:{LONG_AGO}", f"TZOFFSETFROM:{offset}", f"TZOFFSETTO:{offset}", name]
    return ["BEGIN:STANDARD", *inner, "END:STANDARD"]


def _written(offset: timedelta) -> str:
    seconds = int(offset.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    rest = f"{seconds % 60:02}" if seconds % 60 else ""
    return f"{sign}{seconds // 3600:02}{seconds // 60 % 60:02}{rest}"
