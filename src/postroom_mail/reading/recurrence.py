"""The times of a recurrence rule (RFC 5545, section 3.3.10), in bounded steps whatever the rule says.

`dateutil` gives the same times, but cannot be stopped: a rule that nothing fits runs to the year 9999.
"""

import calendar as months
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from msgspec import Struct

MAX_STEPS = 20_000
MAX_NUMBERS = 400
MAX_RULE_CHARS = 2_000
LAST_YEAR = 2200
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
SECONDS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_NUMBERS = {
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 60),
    "BYSETPOS": (-366, 366),
}
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,4}", re.ASCII)
_WHOLE = re.compile(r"\d{1,6}", re.ASCII)
Numbers = frozenset[int]


class StepBudget(Struct):
    """How much may still be looked at; what comes later is left out."""

    left: int = MAX_STEPS

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


class RepeatRule(Struct, frozen=True):
    """`until` is as written: a day, a local time, or a time in UTC."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: str = ""
    numbers: dict[str, Numbers] = {}
    weekdays: tuple[tuple[int, int], ...] = ()  # which of a period (0: each), and the day of the week
    week_start: int = 0

    def of(self, name: str) -> Numbers:
        return self.numbers.get(name, frozenset())


def read_rule(written: str) -> RepeatRule:
    """Return the rule of `FREQ=WEEKLY;BYDAY=MO`. ValueError says what is wrong with it."""
    if len(written) > MAX_RULE_CHARS:
        raise ValueError(f"has more than {MAX_RULE_CHARS} characters")
    parts = dict(part.upper().strip().split("=", 1) for part in written.split(";") if "=" in part)
    frequency = parts.get("FREQ", "")
    if frequency not in FREQUENCIES:
        raise ValueError("needs FREQ, such as FREQ=WEEKLY")
    if parts.get("RSCALE", "GREGORIAN") != "GREGORIAN":
        raise ValueError("must count by the Gregorian calendar")
    interval, count = _whole(parts, "INTERVAL") or 1, _whole(parts, "COUNT")
    return RepeatRule(
        frequency,
        interval,
        count,
        parts.get("UNTIL", ""),
        {name: _numbers(name, parts[name]) for name in _NUMBERS if parts.get(name)},
        _weekdays(parts.get("BYDAY", "")),
        DAYS.index(parts["WKST"]) if parts.get("WKST") in DAYS else 0,
    )


def _whole(parts: dict[str, str], name: str) -> int | None:
    if name not in parts:
        return None
    if not _WHOLE.fullmatch(parts[name]) or int(parts[name]) == 0:
        raise ValueError(f"has a {name} that is no number from 1 to 999999")
    return int(parts[name])


def _numbers(name: str, written: str) -> Numbers:
    lowest, highest = _NUMBERS[name]
    given = written.split(",", MAX_NUMBERS)
    if not all(_NUMBER.fullmatch(each) and lowest <= int(each) <= highest for each in given[:MAX_NUMBERS]):
        raise ValueError(f"has a {name} that is not within {lowest} and {highest}")
    return frozenset(map(int, given[:MAX_NUMBERS]))


def _weekdays(written: str) -> tuple[tuple[int, int], ...]:
    found = [_DAY.fullmatch(each) for each in written.split(",", MAX_NUMBERS)[:MAX_NUMBERS] if each]
    if None in found:
        raise ValueError("has a BYDAY that is no day such as MO or -1FR")
    return tuple((int(each[1] or 0), DAYS.index(each[2])) for each in found if each is not None)


def times(rule: RepeatRule, start: datetime, since: datetime, steps: StepBudget) -> Iterator[datetime]:
    """Yield local times from the start on, in order. Without COUNT it may begin just before `since`.

    The start itself is a time of the series even where the rule leaves it out; the caller adds it.
    """
    sub_daily = SECONDS.get(rule.frequency)
    found = (
        _each_moment(rule, start, since, steps, sub_daily) if sub_daily else _each(rule, start, since, steps)
    )
    number = 0
    for moment in found:
        if moment < start:
            continue
        number += 1
        if rule.count is not None and number > rule.count:
            return
        yield moment


def _each(rule: RepeatRule, start: datetime, since: datetime, steps: StepBudget) -> Iterator[datetime]:
    clock = _clock(rule, start)
    for days in _periods(rule, start, since, steps):
        fitting = (day for day in days if steps.take())
        moments = (datetime.combine(day, each) for day in fitting for each in clock if steps.take())
        yield from _at_positions(rule, moments)


def _clock(rule: RepeatRule, start: datetime) -> list[time]:
    hours = sorted(rule.of("BYHOUR")) or [start.hour]
    minutes = sorted(rule.of("BYMINUTE")) or [start.minute]
    seconds = sorted(min(each, 59) for each in rule.of("BYSECOND")) or [start.second]
    room = MAX_STEPS // (len(hours) * len(minutes))
    return [
        time(hour, minute, second) for hour in hours for minute in minutes for second in seconds[: room + 1]
    ]


def _at_positions(rule: RepeatRule, moments: Iterator[datetime]) -> Iterator[datetime]:
    positions = rule.of("BYSETPOS")
    if not positions:
        yield from moments
        return
    listed = list(moments)
    chosen = {each - 1 if each > 0 else len(listed) + each for each in positions}
    yield from (listed[each] for each in sorted(chosen) if 0 <= each < len(listed))


def _periods(
    rule: RepeatRule, start: datetime, since: datetime, steps: StepBudget
) -> Iterator[Iterator[date]]:
    """Yield the fitting days of each year, month, week or day of the rule."""
    first, skipped = start.date(), _skipped(rule, start, since)
    number = skipped * rule.interval
    while steps.take():
        try:
            days = _days_of_period(rule, first, number)
        except (ValueError, OverflowError):
            return
        if days is None:
            return
        yield (day for day in days if steps.take() and _fits(rule, first, day))
        number += rule.interval


def _skipped(rule: RepeatRule, start: datetime, since: datetime) -> int:
    """Return how many periods end before `since`, if none has to be counted."""
    days = (since - start).days
    if rule.count is not None or days <= 0:
        return 0
    length = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 1}[rule.frequency]
    return max(days // (length * rule.interval) - 1, 0)


def _days_of_period(rule: RepeatRule, first: date, number: int) -> list[date] | None:
    """Return None behind the last year that is looked at."""
    match rule.frequency:
        case "YEARLY":
            year = first.year + number
            wanted = sorted(_months_of(rule, first))
            return [day for month in wanted for day in _month(year, month)] if year <= LAST_YEAR else None
        case "MONTHLY":
            year, month = divmod(first.year * 12 + first.month - 1 + number, 12)
            return _month(year, month + 1) if year <= LAST_YEAR else None
        case "WEEKLY":
            begin = first - timedelta(days=(first.weekday() - rule.week_start) % 7) + timedelta(weeks=number)
            return [begin + timedelta(days=each) for each in range(7)] if begin.year <= LAST_YEAR else None
    day = first + timedelta(days=number)
    return [day] if day.year <= LAST_YEAR else None


def _months_of(rule: RepeatRule, first: date) -> Numbers:
    """Return the months of a year in which a day may fit."""
    if rule.of("BYMONTH"):
        return rule.of("BYMONTH")
    return frozenset(range(1, 13)) if _names_days(rule) else frozenset({first.month})


def _month(year: int, month: int) -> list[date]:
    return [date(year, month, day) for day in range(1, months.monthrange(year, month)[1] + 1)]


def _names_days(rule: RepeatRule) -> bool:
    return bool(rule.of("BYMONTHDAY") or rule.of("BYYEARDAY") or rule.of("BYWEEKNO") or rule.weekdays)


def _fits(rule: RepeatRule, first: date, day: date) -> bool:
    if rule.of("BYMONTH") and day.month not in rule.of("BYMONTH"):
        return False
    if not _names_days(rule):
        return _is_like(rule, first, day)
    return (
        _is_numbered(rule.of("BYMONTHDAY"), day.day, months.monthrange(day.year, day.month)[1])
        and _is_numbered(rule.of("BYYEARDAY"), day.timetuple().tm_yday, 365 + months.isleap(day.year))
        and (not rule.of("BYWEEKNO") or _is_in_week(rule, day))
        and (not rule.weekdays or any(_is_weekday(rule, day, *each) for each in rule.weekdays))
    )


def _is_like(rule: RepeatRule, first: date, day: date) -> bool:
    """Return whether a day is like the start's, which counts if the rule has no day."""
    if rule.frequency in ("YEARLY", "MONTHLY"):
        return day.day == first.day
    return rule.frequency != "WEEKLY" or day.weekday() == first.weekday()


def _is_numbered(wanted: Numbers, number: int, length: int) -> bool:
    return not wanted or number in wanted or number - length - 1 in wanted


def _is_in_week(rule: RepeatRule, day: date) -> bool:
    """Return whether a day is in the rule's weeks. Week 1 is the first with four days in the year."""
    fourth = day + timedelta(days=3 - (day.weekday() - rule.week_start) % 7)
    number = (fourth.timetuple().tm_yday - 1) // 7 + 1
    last = date(fourth.year, 12, 31)
    last_fourth = last + timedelta(days=3 - (last.weekday() - rule.week_start) % 7)
    newest = last_fourth if last_fourth.year == fourth.year else last_fourth - timedelta(weeks=1)
    length = (newest.timetuple().tm_yday - 1) // 7 + 1
    return _is_numbered(rule.of("BYWEEKNO"), number, length)


def _is_weekday(rule: RepeatRule, day: date, which: int, weekday: int) -> bool:
    """Return whether it is that weekday.

    `which` counts in the month, or in the year of a yearly rule without months.
    """
    if day.weekday() != weekday:
        return False
    if which == 0 or rule.frequency not in ("YEARLY", "MONTHLY"):
        return True
    in_year = rule.frequency == "YEARLY" and not rule.of("BYMONTH")
    number = day.timetuple().tm_yday if in_year else day.day
    length = 365 + months.isleap(day.year) if in_year else months.monthrange(day.year, day.month)[1]
    return which == ((number - 1) // 7 + 1 if which > 0 else -((length - number) // 7 + 1))


def _each_moment(
    rule: RepeatRule, start: datetime, since: datetime, steps: StepBudget, seconds: int
) -> Iterator[datetime]:
    """Yield each moment, for hourly rules and faster ones."""
    step = timedelta(seconds=seconds * rule.interval)
    skipped = 0 if rule.count is not None else max((since - start) // step - 1, 0)
    moment = start + skipped * step
    while steps.take() and moment.year <= LAST_YEAR:
        if _fits(rule, start.date(), moment.date()) and _is_in(rule.of("BYHOUR"), moment.hour):
            yield from _at_positions(rule, _within(rule, moment, steps))
        moment += step


def _within(rule: RepeatRule, moment: datetime, steps: StepBudget) -> Iterator[datetime]:
    """Yield the times inside an hour or a minute."""
    is_hour, is_minute = rule.frequency == "HOURLY", rule.frequency == "MINUTELY"
    minutes = sorted(rule.of("BYMINUTE")) if is_hour and rule.of("BYMINUTE") else [moment.minute]
    expands = (is_hour or is_minute) and rule.of("BYSECOND")
    seconds = sorted(min(each, 59) for each in rule.of("BYSECOND")) if expands else [moment.second]
    if not is_hour and not _is_in(rule.of("BYMINUTE"), moment.minute):
        return
    if not (is_hour or is_minute) and not _is_in(rule.of("BYSECOND"), moment.second):
        return
    for minute in minutes:
        yield from (moment.replace(minute=minute, second=each) for each in seconds if steps.take())


def _is_in(wanted: Numbers, number: int) -> bool:
    return not wanted or number in wanted
