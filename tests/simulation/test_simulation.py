"""A cluster under faults, on a virtual clock. `POSTROOM_TEST_SEEDS=5000:6000` makes it as long as you like.

To look into a seed that failed: `.venv/bin/python -m tests.simulation SEED`.
"""

import functools
import os

from tests.simulation.cluster import ForgetfulRecorder
from tests.simulation.run import Result, run

FEW = "0:2"


def seeds() -> range:
    first, colon, last = os.environ.get("POSTROOM_TEST_SEEDS", FEW).partition(":")
    return range(int(first), int(last)) if colon else range(int(first))


@functools.cache
def known(seed: int) -> Result:
    return run(seed)


def test_whatever_fails_every_promise_is_kept() -> None:
    failed = {seed: found for seed in seeds() if (found := known(seed).broken)}
    assert failed == {}, "look into one with: python -m tests.simulation SEED"


def test_a_server_that_forgets_what_it_heard_is_found_out() -> None:
    """The test of the test: mails go twice although the node that heard the answer lives."""
    found = (fault for seed in (1, 2) for fault in run(seed, kind=ForgetfulRecorder).broken)
    assert any("though its answer was known" in fault for fault in found)


def test_a_seed_gives_the_same_run_again() -> None:
    first, second = known(1), run(1)
    assert first.told == second.told
    assert len(first.told) > 10
    assert (first.mails, first.sends, first.seconds) == (second.mails, second.sends, second.seconds)
