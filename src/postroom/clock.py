"""The time, as integer milliseconds since 1970 in UTC, and how it is written."""

import functools
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Protocol

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Clock(Protocol):
    def now(self) -> int: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000


def to_iso(moment: int) -> str:
    return f"{_iso_seconds(moment // SECOND)}.{moment % SECOND:03}Z"


@functools.lru_cache(maxsize=64)
def _iso_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:-6]


def to_mail_date(moment: int) -> str:
    """Return the form of RFC 5322, 3.3."""
    return _mail_date(moment // SECOND)


@functools.lru_cache(maxsize=64)
def _mail_date(seconds: int) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, UTC))


def from_iso(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def start_of_day(moment: int) -> int:
    """Return midnight in UTC: the limits of a day are counted from it."""
    return moment - moment % DAY


def seconds_until(moment: int, now: int) -> int:
    """Return whole seconds, never less than one: the value of a Retry-After header."""
    return max(1, -(-(moment - now) // SECOND))
