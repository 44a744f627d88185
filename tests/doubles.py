"""Small real stand-ins for what a test must hold in its hand."""

from collections.abc import Mapping
from dataclasses import dataclass

from postroom.external_mailboxes.fetching import Fetched, FetchError
from postroom.external_mailboxes.posts import PostIntake
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.resources import Resources

START = 1_794_650_400_000  # 2026-11-14T10:00:00Z


@dataclass
class FakeClock:
    """Time that moves only when a test turns it."""

    moment: int = START

    def now(self) -> int:
        return self.moment

    def turn(self, milliseconds: int) -> None:
        self.moment += milliseconds


@dataclass
class RushingClock:
    """Each look at it finds it later, so that no limit of a minute or a day is ever reached."""

    step: int
    moment: int = START

    def now(self) -> int:
        self.moment += self.step
        return self.moment


class RefusingFetcher:
    """Asks nobody outside."""

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        raise FetchError("Nobody is asked.")


def post_intake(resources: Resources) -> PostIntake:
    return PostIntake(resources, OwnReader(AT_ONCE_BYTES), RefusingFetcher())
