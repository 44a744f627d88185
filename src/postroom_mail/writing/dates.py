"""A date in the format of RFC 5322 section 3.3."""

from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache


def to_date(moment: int) -> str:
    return _date_of_second(moment // 1000)


@lru_cache(maxsize=64)
def _date_of_second(second: int) -> str:
    """Return the date, cached: many emails are written within one second."""
    return format_datetime(datetime.fromtimestamp(second, UTC))
