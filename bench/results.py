"""What a measurement found, what it should be, and what a peer did in the same run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    value: float
    ratio: float  # ours to the peer's: the median over rounds, so not always the quotient of the two values


@dataclass(frozen=True, slots=True)
class Aim:
    bound: float
    is_ceiling: bool
    is_ratio: bool = False  # the bound is for the ratio to the peer, not for the value

    def is_met_by(self, number: float) -> bool:
        return number <= self.bound if self.is_ceiling else number >= self.bound

    def __str__(self) -> str:
        relation = "<=" if self.is_ceiling else ">="
        return f"{relation} {self.bound:g}{' x peer' if self.is_ratio else ''}"


def at_most(bound: float) -> Aim:
    return Aim(bound, is_ceiling=True)


def at_least_times_peer(ratio: float) -> Aim:
    return Aim(ratio, is_ceiling=False, is_ratio=True)


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    value: float
    unit: str
    aim: Aim | None = None
    peer: Peer | None = None

    @property
    def is_met(self) -> bool | None:
        """None when there is no aim: the result only informs."""
        if self.aim is None:
            return None
        if not self.aim.is_ratio:
            return self.aim.is_met_by(self.value)
        return self.peer is not None and self.aim.is_met_by(self.peer.ratio)
