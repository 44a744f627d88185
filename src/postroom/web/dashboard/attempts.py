"""Sign-in attempts: after some failures, further ones with that key from that address have to wait."""

from msgspec import Struct

from postroom.clock import MINUTE, SECOND, seconds_until
from postroom.errors import RateLimitExceeded

FREE_ATTEMPTS = 5
LONGEST_WAIT = 15 * MINUTE
FORGOTTEN_AFTER = 60 * MINUTE
MOST_REMEMBERED = 10_000
KEY_CHARACTERS = 7
FAILURE_SECONDS = 0.5  # the delay of the answer to a failed attempt


class _Failures(Struct):
    count: int = 0
    next_at: int = 0
    last_at: int = 0


class Attempts:
    """Counted in memory by each node. The wait doubles with each further failure.

    By address and beginning of the key together: someone who guesses locks out only themselves.
    """

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], _Failures] = {}  # the one that failed longest ago first

    def require(self, address: str, token: str, now: int) -> None:
        failures = self._failures.get(_name(address, token))
        if failures is not None and failures.next_at > now:
            seconds = seconds_until(failures.next_at, now)
            raise RateLimitExceeded(
                f"Too many failed attempts. Try again in {seconds} seconds.", retry_after=seconds
            )

    def record_failure(self, address: str, token: str, now: int) -> None:
        failures = self._failures.pop(_name(address, token), None)
        if failures is None or failures.last_at < now - FORGOTTEN_AFTER:
            failures = _Failures()
        failures.count += 1
        failures.last_at = now
        if failures.count >= FREE_ATTEMPTS:
            wait = SECOND << min(failures.count - FREE_ATTEMPTS + 1, 20)
            failures.next_at = now + min(wait, LONGEST_WAIT)
        if len(self._failures) >= MOST_REMEMBERED:
            del self._failures[next(iter(self._failures))]
        self._failures[_name(address, token)] = failures

    def forget(self, address: str, token: str) -> None:
        """Forget the failures of an address: a success shows that they were by the same person."""
        self._failures.pop(_name(address, token), None)


def _name(address: str, token: str) -> tuple[str, str]:
    return address, token[:KEY_CHARACTERS]
