"""Moments of a calendar: local times to UTC, by the name of the zone or by the calendar's own rules."""

import calendar as months
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

MAX_ONSETS = 500
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# The names that Windows uses for the zones met most often, for calendars that do not bring their rules.
WINDOWS_ZONES = {
    "AUS Eastern Standard Time": "Australia/Sydney",
    "Arab Standard Time": "Asia/Riyadh",
    "Central Europe Standard Time": "Europe/Budapest",
    "Central European Standard Time": "Europe/Warsaw",
    "Central Standard Time": "America/Chicago",
    "China Standard Time": "Asia/Shanghai",
    "E. Africa Standard Time": "Africa/Nairobi",
    "E. South America Standard Time": "America/Sao_Paulo",
    "Eastern Standard Time": "America/New_York",
    "FLE Standard Time": "Europe/Kiev",
    "GMT Standard Time": "Europe/London",
    "GTB Standard Time": "Europe/Bucharest",
    "Greenwich Standard Time": "Atlantic/Reykjavik",
    "India Standard Time": "Asia/Kolkata",
    "Israel Standard Time": "Asia/Jerusalem",
    "Korea Standard Time": "Asia/Seoul",
    "Mountain Standard Time": "America/Denver",
    "New Zealand Standard Time": "Pacific/Auckland",
    "Pacific Standard Time": "America/Los_Angeles",
    "Romance Standard Time": "Europe/Paris",
    "Russian Standard Time": "Europe/Moscow",
    "SE Asia Standard Time": "Asia/Bangkok",
    "Singapore Standard Time": "Asia/Singapore",
    "South Africa Standard Time": "Africa/Johannesburg",
    "Tokyo Standard Time": "Asia/Tokyo",
    "Turkey Standard Time": "Europe/Istanbul",
    "UTC": "UTC",
    "W. Europe Standard Time": "Europe/Berlin",
}

_ZONE_NAME = re.compile(r"(?:.*/)?((?:[A-Za-z]{2,20}/)?[A-Za-z]{2,20}/[A-Za-z_+-]{2,30}\d{0,2}|UTC|GMT)")
_YEARLY_DAY = re.compile(r"([+-]?[1-5])?([A-Z]{2})")


@dataclass(slots=True)
class Observance:
    """Standard or summer time: when it begins, and how far local time is from UTC then."""

    offset: timedelta | None = None
    offset_before: timedelta | None = None
    onsets: list[datetime] = field(default_factory=list)
    rule: dict[str, str] = field(default_factory=dict)

    def last_onset(self, local: datetime) -> datetime | None:
        """When this time last began, up to a local time."""
        onsets = [onset for onset in self.onsets if onset <= local]
        if self.onsets and self.rule:
            onsets += (
                onset
                for year in (local.year - 1, local.year)
                if (onset := self._onset_in(year)) is not None and self.onsets[0] <= onset <= local
            )
        return max(onsets, default=None)

    def _onset_in(self, year: int) -> datetime | None:
        """The onset by a yearly rule such as BYMONTH=3;BYDAY=-1SU."""
        until = self.rule.get("UNTIL", "")[:4]
        if self.rule.get("FREQ") != "YEARLY" or (until.isdecimal() and int(until) < year):
            return None
        first = self.onsets[0]
        month = self.rule.get("BYMONTH", str(first.month))
        day = _YEARLY_DAY.fullmatch(self.rule.get("BYDAY", ""))
        if not (month.isdecimal() and len(month) < 3 and 1 <= int(month) <= 12 and 1 <= year <= 9999):
            return None
        number = _day_of_month(year, int(month), day) if day and day[2] in DAYS else first.day
        length = months.monthrange(year, int(month))[1]
        return first.replace(year=year, month=int(month), day=min(max(number, 1), length))


def _day_of_month(year: int, month: int, day: re.Match[str]) -> int:
    first_weekday, length = months.monthrange(year, month)
    which = int(day[1] or 1)
    first = 1 + (DAYS.index(day[2]) - first_weekday) % 7
    if which > 0:
        return first + 7 * (which - 1)
    last = first + 7 * ((length - first) // 7)
    return last + 7 * (which + 1)


Rules = dict[str, list[Observance]]


def utc_offset(local: datetime, zone: str, rules: Rules) -> timedelta | None:
    """How far local time is from UTC, or None when nobody knows the zone."""
    known = _known_zone(zone)
    if known is not None:
        return known.utcoffset(local)
    last: tuple[datetime, Observance] | None = None
    for observance in rules.get(zone, ()):
        onset = observance.last_onset(local)
        if onset is not None and (last is None or onset >= last[0]):
            last = onset, observance
    if last is not None:
        return last[1].offset
    return next((observance.offset_before for observance in rules.get(zone, ())), None)


def _known_zone(name: str) -> ZoneInfo | None:
    """A zone of the system's tables. Some programs put a path of their own before the name."""
    name = WINDOWS_ZONES.get(name, name)
    found = _ZONE_NAME.fullmatch(name[:200])
    try:
        return ZoneInfo(found[1]) if found else None
    except (OSError, ValueError, KeyError):
        return None
