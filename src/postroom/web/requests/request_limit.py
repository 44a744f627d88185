"""The limit of requests per account and minute, counted in memory by each node."""

from msgspec import Struct

from postroom.clock import MINUTE, seconds_until
from postroom.errors import RateLimitExceeded

FORGET_ABOVE_ACCOUNTS = 10_000


class Allowance(Struct, frozen=True):
    """How many requests an account has left in its current minute; negative: too many."""

    most: int | None  # None: no limit
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        if self.most is None:
            return {}
        return {
            "RateLimit-Limit": str(self.most),
            "RateLimit-Remaining": str(max(0, self.remaining)),
            "RateLimit-Reset": str(self.reset_seconds),
        }

    def require(self) -> None:
        if self.most is not None and self.remaining < 0:
            raise RateLimitExceeded(
                f"More than {self.most} requests in a minute. Try again in {self.reset_seconds} s.",
                retry_after=self.reset_seconds,
            )


class _Minute(Struct):
    ends_at: int
    requests: int = 0


class RequestLimit:
    """An account's minute begins with its first request."""

    def __init__(self) -> None:
        self._minutes: dict[str, _Minute] = {}

    def count(self, account_id: str, most: int | None, now: int) -> Allowance:
        if most is None:
            return Allowance(None, 0, 0)
        minute = self._minutes.get(account_id)
        if minute is None or minute.ends_at <= now:
            minute = self._begin_minute(account_id, now)
        minute.requests += 1
        return Allowance(most, most - minute.requests, seconds_until(minute.ends_at, now))

    def _begin_minute(self, account_id: str, now: int) -> _Minute:
        if len(self._minutes) > FORGET_ABOVE_ACCOUNTS:
            self._minutes = {key: kept for key, kept in self._minutes.items() if kept.ends_at > now}
        minute = self._minutes[account_id] = _Minute(now + MINUTE)
        return minute
