"""Rounds against the noise of a machine: ours and the peer's take turns, and medians are compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from bench.results import Peer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Comparison:
    ours: list[float]
    peers: list[float]

    @property
    def value(self) -> float:
        return median(self.ours)

    def peer(self, name: str) -> Peer:
        """The ratio is taken within each round, where both met the same state of the machine."""
        ratios = [our / peer for our, peer in zip(self.ours, self.peers, strict=True)]
        return Peer(name, median(self.peers), median(ratios))


def alternate(rounds: int, ours: Callable[[], T], peer: Callable[[], T]) -> list[tuple[T, T]]:
    """(ours, peer's) of each round; who goes first changes from round to round."""
    pairs = []
    for number in range(rounds):
        if number % 2 == 0:
            our_result = ours()
            pairs.append((our_result, peer()))
        else:
            peer_result = peer()
            pairs.append((ours(), peer_result))
    return pairs


def in_turn(rounds: int, runs: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """What each found in each round, one after the other within it; who goes first changes."""
    found: dict[str, list[T]] = {name: [] for name in runs}
    names = list(runs)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(runs[name]())
    return found


def compare(pairs: list[tuple[T, T]], value: Callable[[T], float]) -> Comparison:
    return Comparison([value(our) for our, _ in pairs], [value(peer) for _, peer in pairs])
