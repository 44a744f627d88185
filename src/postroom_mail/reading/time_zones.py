"""Calendar times to UTC, by the name of the zone or by the calendar's own rules."""

import calendar as months
import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from postroom_mail.languages.read import word_pairs

MAX_ONSETS = 500
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ZONE_NAME = re.compile(r"(?:.*/)?((?:[A-Za-z]{2,20}/)?[A-Za-z]{2,20}/[A-Za-z_+-]{2,30}\d{0,2}|UTC|GMT)")
_SHOWN = re.compile(r"\((?:UTC|GMT)[^)]{0,12}\)\s*+(.{2,150})")
_OFFSET = re.compile(r"([+-])(\d\d)(\d\d)(\d\d)?", re.ASCII)
_CITIES = re.compile(r"[,/;]")
_CITY = re.compile(r"[A-Z][A-Za-z_.'-]{2,30}")
CONTINENTS = ("Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic")
MAX_CITIES = 6
_YEARLY_DAY = re.compile(r"([+-]?[1-5])?([A-Z]{2})")


class Observance(Struct):
    """Standard or summer time: when it begins, and its offset from UTC."""

    offset: timedelta | None = None
    offset_before: timedelta | None = None
    onsets: list[datetime] = field(default_factory=list)
    rule: dict[str, str] = field(default_factory=dict)

    def last_onset(self, local: datetime) -> datetime | None:
        """Return when this time last began, at a local time or before it."""
        onsets = [onset for onset in self.onsets if onset <= local]
        if self.onsets and self.rule:
            onsets += (
                onset
                for year in (local.year - 1, local.year)
                if (onset := self._onset_in(year)) is not None and self.onsets[0] <= onset <= local
            )
        return max(onsets, default=None)

    def _onset_in(self, year: int) -> datetime | None:
        """Return the onset by a yearly rule such as BYMONTH=3;BYDAY=-1SU."""
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
    """Return the offset of local time from UTC, None for an unknown zone."""
    known = known_zone(zone)
    if known is not None:
        return known.utcoffset(local)
    by_rules = _offset_by_rules(local, zone, rules)
    guessed = _guessed_zone(zone) if by_rules is None else None
    return guessed.utcoffset(local) if guessed is not None else by_rules


def read_offset(written: str) -> timedelta | None:
    """Return an offset as `TZOFFSETTO` writes it: `+0100`."""
    match = _OFFSET.match(written.strip())
    if match is None:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]), seconds=int(match[4] or 0))
    return -offset if match[1] == "-" else offset


def _offset_by_rules(local: datetime, zone: str, rules: Rules) -> timedelta | None:
    last: tuple[datetime, Observance] | None = None
    for observance in rules.get(zone, ()):
        onset = observance.last_onset(local)
        if onset is not None and (last is None or onset >= last[0]):
            last = onset, observance
    if last is not None:
        return last[1].offset
    return next((observance.offset_before for observance in rules.get(zone, ())), None)


@lru_cache(maxsize=256)
def known_zone(name: str) -> ZoneInfo | None:
    """Return a zone of the system's tables, or of Windows. Some programs put a path before the name."""
    name = name.strip("\"' ")[:200]
    meant = windows_zones().get(name, name) if " " in name or "/" in name else name
    found = _ZONE_NAME.fullmatch(meant)
    return _zone(found[1]) if found else None


@lru_cache(maxsize=256)
def _guessed_zone(name: str) -> ZoneInfo | None:
    """Guess a zone without rules, by a short name such as EST, or by the first known city.

    Outlook shows its zones as `(UTC+01:00) Amsterdam, Berlin, Rome`.
    """
    name = name.strip("\"' ")[:200]
    shown = _SHOWN.match(name)
    listed = windows_zones().get(shown[1].strip() if shown else name)
    if listed is not None or shown is None:
        return _zone(listed) if listed else None
    cities = [city.strip().replace(" ", "_") for city in _CITIES.split(shown[1])[:MAX_CITIES]]
    names = (f"{continent}/{city}" for city in cities if _CITY.fullmatch(city) for continent in CONTINENTS)
    return next((zone for each in names if (zone := _zone(each))), None)


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


def windows_zones() -> dict[str, str]:
    return word_pairs("postroom_mail.reading", "windows_zones.txt")
