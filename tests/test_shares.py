"""What a long run leaves out is tried by the runs of the next changes."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from tests.shares import of_other_turns


@dataclass(frozen=True)
class Marked:
    path: str
    parts: tuple[int, ...] | None = ()
    turn: int | None = None

    def get_closest_marker(self, name: str) -> Any:
        turn = {} if self.turn is None else {"turn": self.turn}
        is_marked = self.parts is not None and name == "share"
        return SimpleNamespace(args=self.parts, kwargs=turn) if is_marked else None


def taken(items: list[Marked], change: int) -> set[int]:
    return set(range(len(items))) - set(of_other_turns(cast(Any, items), change))


def test_four_changes_try_each_shared_test_once_and_every_change_all_others() -> None:
    items = [*[Marked("one")] * 7, Marked("one", None), *[Marked("two")] * 3]
    runs = [taken(items, change) for change in range(20, 24)]
    assert set.intersection(*runs) == {7}
    assert set.union(*runs) == set(range(len(items)))
    assert all(sum(place >= 8 for place in run) <= 1 for run in runs)
    assert sum(map(len, runs)) == len(items) + 3


def test_two_changes_try_what_is_shared_out_in_halves() -> None:
    items = [Marked("one", (2,)), Marked("one", (2,))]
    assert [taken(items, change) for change in (4, 5)] == [{0}, {1}]


def test_what_names_its_turn_is_tried_together() -> None:
    items = [Marked("one", (3,), turn=1)] * 4
    assert [len(taken(items, change)) for change in (3, 4, 5)] == [0, 4, 0]
