"""No test sleeps for a tenth of a second or more, but where the time itself is what it is about."""

import ast
from pathlib import Path

import pytest

from tests.waiting import until, wait_until

TESTS = Path(__file__).parent
LONGEST_SECONDS = 0.1  # from here on a pause is listed below
LISTED = {
    "couriers/test_webhook.py": 1,  # an endpoint that is slow: eight answers take longer than the deadline
    "end_to_end/test_idle.py": 1,  # what a server does in the six seconds in which nothing is to be done
    "end_to_end/test_search_kill.py": 1,  # how long a server lives before it is killed
    "mixed_kills/run.py": 1,  # how long PostgreSQL is held
    "power_loss/scenario.py": 1,  # in which the log of the database is copied
    "storage/test_postgres_faults.py": 1,  # longer than a batch waits for a lock
    "storage/test_postgres_hangs.py": 1,  # in which nothing happens that one could wait for
}
NOT_TIMED = ("soak/", "simulation/")  # runs for as long as one likes; and has a clock of its own


def seconds_of(node: ast.AST, constants: dict[str, float]) -> float:
    """Of a call of `sleep`; 0 for what is no such call, or has a length that is drawn."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "sleep":
        return 0.0
    length, parts = node.args[0], list(ast.walk(node.args[0]))
    if any(isinstance(part, ast.Call) for part in parts):
        return 0.0
    if isinstance(length, ast.Name):
        return constants.get(length.id, 0.0)
    numbers = [
        float(str(part.value)) for part in parts if isinstance(part, ast.Constant) and is_length(part, parts)
    ]
    return max(numbers, default=0.0)


def is_length(part: ast.Constant, parts: list[ast.AST]) -> bool:
    """Not how often a length is slept."""
    return isinstance(part.value, float) or len(parts) == 1


def long_sleeps(path: Path) -> int:
    text = path.read_text()
    if "sleep(" not in text:
        return 0
    tree = ast.parse(text)
    constants = {
        target.id: float(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return sum(seconds_of(node, constants) >= LONGEST_SECONDS for node in ast.walk(tree))


def test_the_tests_that_sleep_are_those_that_are_listed() -> None:
    found = {str(path.relative_to(TESTS)): long_sleeps(path) for path in TESTS.rglob("*.py")}
    assert {
        name: count for name, count in found.items() if count and not name.startswith(NOT_TIMED)
    } == LISTED


async def test_both_ways_to_wait_give_what_they_found(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([0, [], "", 7])

    async def ask() -> object:
        return next(answers)

    assert await until(ask) == 7
    found = iter([None, "x"])
    assert wait_until(lambda: next(found)) == "x"
    monkeypatch.setattr("tests.waiting.LIMIT_SECONDS", 0)
    with pytest.raises(AssertionError, match="the train"):
        await until(lambda: False, "the train never came")
    with pytest.raises(AssertionError, match="the train"):
        wait_until(lambda: False, "the train never came")
