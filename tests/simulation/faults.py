"""What goes wrong, and when: all of it drawn from one seed."""

import asyncio
import random
from dataclasses import dataclass, field
from enum import Enum, auto


class CommitOutcome(Enum):
    """Of one transaction."""

    COMMITTED = auto()
    REFUSED = auto()  # before it began
    ROLLED_BACK = auto()  # at its end
    ANSWER_LOST = auto()  # it is committed, and nobody hears of it


class Answer(Enum):
    """Of another server to a mail, or of an endpoint to an event."""

    TAKEN = auto()
    PUT_OFF = auto()
    TAKEN_UNHEARD = auto()  # it has it, and its answer is lost
    HANGS = auto()


@dataclass
class Faults:
    """`rate` is how likely each is; with 0 all goes well, and only time passes."""

    seed: int
    rate: float = 0.15
    told: list[str] = field(default_factory=list)  # what happened, for whoever looks into a failing seed

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def tell(self, what: str) -> None:
        self.told.append(f"{asyncio.get_running_loop().time():10.3f} {what}")

    def happens(self, part: float = 1.0) -> bool:
        return self.random.random() < self.rate * part

    def travel_seconds(self) -> float:
        """Until the database has done it: mostly at once, at times behind a slow disk."""
        if self.happens(0.1):
            return self.random.uniform(0.5, 9.0)
        return self.answer_seconds()

    def answer_seconds(self) -> float:
        return self.random.uniform(0.0002, 0.02)

    def failure(self) -> CommitOutcome:
        if not self.happens():
            return CommitOutcome.COMMITTED
        return self.random.choice(
            [CommitOutcome.REFUSED, CommitOutcome.ROLLED_BACK, CommitOutcome.ANSWER_LOST]
        )

    def answer(self) -> Answer:
        if not self.happens():
            return Answer.TAKEN
        return self.random.choice([Answer.PUT_OFF, Answer.TAKEN_UNHEARD, Answer.HANGS])
