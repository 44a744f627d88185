"""From the start of the process to its first healthy answer, on a new and on an existing data folder."""

from pathlib import Path
from statistics import median

from bench.processes import running_postroom, scratch_folder
from bench.results import Result, at_most

MOST_SECONDS = 0.8


def measure(rounds: int = 5) -> list[Result]:
    first, again = zip(*(_start_twice() for _ in range(rounds)), strict=True)
    return [
        Result("start, new folder", median(first), "s", at_most(MOST_SECONDS)),
        Result("start, existing folder", median(again), "s", at_most(MOST_SECONDS)),
    ]


def _start_twice() -> tuple[float, float]:
    with scratch_folder() as folder:
        return _start(folder), _start(folder)


def _start(folder: Path) -> float:
    with running_postroom(folder) as server:
        return server.start_seconds
