"""Days as index words: a day, its month, year and decade, so that a range of days is a few words."""

from datetime import UTC, date, datetime
from functools import lru_cache

FIRST, LAST = date(1970, 1, 1), date(2099, 12, 31)  # mail is of these days


def words_of(moment: int) -> list[str]:
    """Return the words for the day of a moment, in UTC."""
    return _words_of_day(_day(moment))


@lru_cache(64)
def _words_of_day(day: date) -> list[str]:
    return [_decade(day.year // 10), _year(day.year), _month(day.year, day.month), f"d{day:%Y%m%d}"]


def words_before(moment: int) -> list[str]:
    """Return words of which a day has one exactly if it is before that of the moment."""
    day = _day(moment)
    return [
        *(_decade(decade) for decade in range(FIRST.year // 10, day.year // 10)),
        *(_year(year) for year in range(day.year // 10 * 10, day.year)),
        *(_month(day.year, month) for month in range(1, day.month)),
        *(f"d{day:%Y%m}{number:02}" for number in range(1, day.day)),
    ]


def words_from(moment: int) -> list[str]:
    """Return words of which a day has one exactly if it is that of the moment, or later."""
    day = _day(moment)
    return [
        *(f"d{day:%Y%m}{number:02}" for number in range(day.day, 32)),
        *(_month(day.year, month) for month in range(day.month + 1, 13)),
        *(_year(year) for year in range(day.year + 1, day.year // 10 * 10 + 10)),
        *(_decade(decade) for decade in range(day.year // 10 + 1, LAST.year // 10 + 1)),
    ]


def _day(moment: int) -> date:
    return min(LAST, max(FIRST, datetime.fromtimestamp(moment / 1000, UTC).date()))


def _decade(decade: int) -> str:
    return f"t{decade}"


def _year(year: int) -> str:
    return f"y{year}"


def _month(year: int, month: int) -> str:
    return f"m{year}{month:02}"
