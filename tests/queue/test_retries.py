"""Waits between attempts: as the documents list them, a fifth more or less, and then no more."""

from postroom.clock import HOUR, MINUTE, SECOND
from postroom.queue import retries
from postroom.queue.deliveries import MAIL, WEBHOOK
from tests.samples import samples

WAITS = {
    MAIL: [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 1 * HOUR, 2 * HOUR, 4 * HOUR, *[8 * HOUR] * 5],
    WEBHOOK: [
        *(5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE),
        *(2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR),
    ],
}


@samples("kind", [MAIL, WEBHOOK])
def test_each_wait_lies_within_a_fifth_of_its_place_in_the_list(kind: str) -> None:
    for used, wait in enumerate(WAITS[kind]):
        drawn = [retries.wait_after(kind, used) or 0 for _ in range(200)]
        assert wait * 0.8 - 1 <= min(drawn) < wait < max(drawn) <= wait * 1.2


@samples("kind", [MAIL, WEBHOOK])
def test_after_the_last_wait_there_is_none(kind: str) -> None:
    assert retries.wait_after(kind, len(WAITS[kind]) - 1) is not None
    assert retries.wait_after(kind, len(WAITS[kind])) is None
