"""Of dear tests that try one rule on many samples, or a page, a long run takes a share, the next the others.

`@pytest.mark.share` marks them, and those of a module are shared out by their order: a quarter each, or half
with `share(2)`. What shares something dear names its turn: all tests of `share(3, turn=0)` are run together.
Whose turn it is follows from the changelog, to which changes add a line: one commit is always judged alike,
the next one by other samples. A run of few tests takes all it was given, and `make test-long` everything.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

MARKER = "share"
PARTS = 4
ALL = "POSTROOM_TEST_SHARE"  # "all": none is left for another run
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def leave_for_others(config: pytest.Config, items: list[pytest.Item]) -> int:
    """Takes the tests whose turn it is not out of the list, and returns how many."""
    if os.environ.get(ALL) == "all":
        return 0
    left = {items[place] for place in of_other_turns(items, zlib.crc32(CHANGELOG.read_bytes()))}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]
    return len(left)


def of_other_turns(items: Sequence[pytest.Item], change: int) -> Iterator[int]:
    marks = {place: item.get_closest_marker(MARKER) for place, item in enumerate(items)}
    shared = [place for place, mark in marks.items() if mark]
    for _, group in groupby(shared, key=lambda place: items[place].path):
        yield from (
            place for number, place in enumerate(group) if not is_in_turn(marks[place], number, change)
        )


def is_in_turn(mark: pytest.Mark | None, number: int, change: int) -> bool:
    assert mark is not None
    parts: int = mark.args[0] if mark.args else PARTS
    turn: int = mark.kwargs.get("turn", number)
    return (turn - change) % parts == 0


def summary(left: int) -> Iterator[str]:
    if left:
        yield f"left for the runs of the next changes: {left} tests (make test-long runs them all)"
