"""Times and durations as calendar files write them (RFC 5545, sections 3.3.4 to 3.3.6)."""

import re
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct

from postroom_mail.reading.time_zones import Rules, utc_offset

_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z)?)?", re.ASCII)
_DURATION = re.compile(
    r"([+-])?P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?", re.ASCII
)

FIRST_YEAR, LAST_YEAR = 10, 9900  # any zone and length can be shown


class WrittenMoment(Struct, frozen=True):
    local: datetime
    is_day: bool
    zone: str

    @classmethod
    def read(cls, value: str, zone: str) -> "WrittenMoment | None":
        match = _MOMENT.match(value.strip())
        if match is None:
            return None
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        try:
            # Python has no leap seconds.
            local = datetime(year, month, day, hour, minute, min(second, 59))  # noqa: DTZ001 (zone is apart)
        except ValueError:
            return None
        is_day = match[4] is None
        # A day has no zone, though some programs name one (RFC 5545, 3.2.19).
        return cls(local, is_day, "" if is_day else "UTC" if match[7] else zone.strip()[:200])

    def as_day(self) -> "WrittenMoment":
        """Return the day, if the time is midnight: an all-day event that is written with times."""
        is_midnight = self.local.time() == time.min
        return WrittenMoment(self.local, True, "") if is_midnight else self

    def after(self, duration: timedelta) -> "WrittenMoment | None":
        try:
            return WrittenMoment(self.local + duration, self.is_day and not duration.seconds, self.zone)
        except OverflowError:
            return None

    def written(self) -> str:
        return self.local.date().isoformat() if self.is_day else self.local.isoformat()

    def at(self, rules: Rules) -> int | None:
        """Return milliseconds UTC. None for a day, an unknown zone, and the ends of the calendar."""
        is_moment = not self.is_day and FIRST_YEAR <= self.local.year <= LAST_YEAR
        offset = None if not is_moment else utc_offset(self.local, self.zone, rules)
        if offset is None:
            return None
        since = self.local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC) - offset
        return since // timedelta(milliseconds=1)


def read_duration(written: str) -> timedelta | None:
    match = _DURATION.fullmatch(written.strip())
    if match is None:
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if match[1] == "-" else length
