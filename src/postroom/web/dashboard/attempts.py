"""Attempts to sign in: after a few that failed, an address or the beginning of a key has to wait."""

from dataclasses import dataclass

from postroom.clock import MINUTE, SECOND, seconds_until
from postroom.errors import RateLimitExceeded

FREE_ATTEMPTS = 5
LONGEST_WAIT = 15 * MINUTE
FORGOTTEN_AFTER = 60 * MINUTE
FORGET_ABOVE = 10_000
KEY_CHARACTERS = 7
FAILURE_SECONDS = 0.5  # every failed attempt is answered so much later


@dataclass(slots=True)
class _Failures:
    count: int = 0
    next_at: int = 0
    last_at: int = 0


class Attempts:
    """Counted in memory by each node. The wait doubles with each further failure."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failures] = {}

    def require(self, address: str, token: str, now: int) -> None:
        for name in self._names(address, token):
            failures = self._failures.get(name)
            if failures is not None and failures.next_at > now:
                seconds = seconds_until(failures.next_at, now)
                raise RateLimitExceeded(
                    f"Too many attempts failed. Try again in {seconds} s.", retry_after=seconds
                )

    def note_failure(self, address: str, token: str, now: int) -> None:
        if len(self._failures) > FORGET_ABOVE:
            self._failures = {
                name: kept for name, kept in self._failures.items() if kept.last_at > now - FORGOTTEN_AFTER
            }
        for name in self._names(address, token):
            failures = self._failures.setdefault(name, _Failures())
            if failures.last_at < now - FORGOTTEN_AFTER:
                failures.count = 0
            failures.count += 1
            failures.last_at = now
            if failures.count >= FREE_ATTEMPTS:
                wait = SECOND << min(failures.count - FREE_ATTEMPTS + 1, 20)
                failures.next_at = now + min(wait, LONGEST_WAIT)

    def forget(self, address: str) -> None:
        """Whoever got in has shown that the failures before were his own."""
        self._failures.pop(f"address {address}", None)

    @staticmethod
    def _names(address: str, token: str) -> tuple[str, str]:
        return f"address {address}", f"key {token[:KEY_CHARACTERS]}"
