"""The linear model of the junk filter: what all accounts start with, and what each teacher added to it.

A score is a log-odds: above 0 junk is more likely than not. What one teacher adds to it has a bound, so that
nobody's wrong examples turn the filter around for others.
"""

import math
import random
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from operator import add
from typing import TypeAlias

from msgspec import Struct

from postroom_mail.junk.features import SIZE, Features

START_BOUND = 6.0
START_TRUST = 0.7  # it learned from mail of other people and years
SURE_JUNK, SURE_WANTED = 2.2, -3.5  # of the start: today's junk is new to it, and seems wanted
TEACHER_BOUND = 3.0
BENEFIT_OF_DOUBT = 20  # examples: so many contradictions halve the bound of one who agrees in nothing
TAUGHT_BOUND = 6.0  # of all teachers together
MARGIN = 3.0  # an example counts as learned when it scores so far on its side
STEP = 0.7
WANTED_STEP = 2.0  # times as large: losing a wanted email is worse than seeing junk
PASSES = 3
PIECE_DOUBT, PART_DOUBT = 0.3, 0.4  # a piece of the text, and HTML or plain text alone, count less
LEAST_PIECE = 20  # features: fewer say too little to judge by them alone
STORED_STEP = 1 / 128  # of a stored weight


Weights: TypeAlias = "array[float]"  # one for each feature


class Example(Struct, frozen=True):
    """The features of an email, and whether a person called it junk."""

    features: tuple[int, ...]
    is_junk: bool


class StartModel(Struct, frozen=True):
    """What every account starts with: weights of features, and a bias."""

    weights: list[float]
    bias: float


class Taught(Struct, frozen=True):
    """What one teacher added, and how many examples agreed with what the start is sure of, or did not."""

    weights: Weights
    agreed: int = 0
    contradicted: int = 0

    @property
    def bound(self) -> float:
        """Return how far this moves a score at most: nobody's thousand wrong examples turn the filter off."""
        right = self.agreed + BENEFIT_OF_DOUBT
        return TEACHER_BOUND * right / (right + self.contradicted)

    def score(self, features: Sequence[int]) -> float:
        return _within(_sum(self.weights, features), self.bound)


class Model(Struct, frozen=True):
    start: StartModel
    taught: tuple[Taught, ...] = ()

    def score_email(self, found: Features) -> float:
        """Return the log-odds that an email is junk: as a whole, or by the worst view of its text."""
        return max(self._of_sums(sums, length) - doubt for doubt, sums, length in self._views(found))

    def _views(self, found: Features) -> Iterator[tuple[float, list[float], int]]:
        """Yield what each view counts less, its sums of weights by start and teachers, and its length."""
        models: list[Weights | list[float]] = [self.start.weights, *(each.weights for each in self.taught)]
        common, length_of_common = [_total(each, found.common) for each in models], len(found.common)
        whole, length = common, length_of_common
        for part in found.parts:
            of_part, length_of_part = common, length_of_common
            for piece in part:
                sums = [_total(each, piece) for each in models]
                whole, of_part = list(map(add, whole, sums)), list(map(add, of_part, sums))
                length, length_of_part = length + len(piece), length_of_part + len(piece)
                if len(piece) >= LEAST_PIECE:
                    yield PIECE_DOUBT, list(map(add, common, sums)), length_of_common + len(piece)
            if length_of_part >= length_of_common + LEAST_PIECE:
                yield PART_DOUBT, of_part, length_of_part
        yield 0.0, whole, length

    def _of_sums(self, sums: Sequence[float], length: int) -> float:
        root = math.sqrt(length or 1)
        start = _within(START_TRUST * (sums[0] / root + self.start.bias), START_BOUND)
        taught = (
            _within(total / root, each.bound) for each, total in zip(self.taught, sums[1:], strict=True)
        )
        return start + _within(sum(taught), TAUGHT_BOUND)

    def score(self, features: Sequence[int]) -> float:
        """Return the log-odds that an email with these features is junk, as a whole."""
        return self.start_score(features) + _within(
            sum(each.score(features) for each in self.taught), TAUGHT_BOUND
        )

    def start_score(self, features: Sequence[int]) -> float:
        return _within(START_TRUST * (_sum(self.start.weights, features) + self.start.bias), START_BOUND)


def probability(score: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def no_weights() -> Weights:
    return array("f", bytes(4 * SIZE))


def learn(
    start: StartModel,
    before: Taught,
    new: Iterable[Example],
    repeated: Iterable[Example] = (),
    seed: int = 0,
) -> Taught:
    """Change one teacher's weights until the examples score on their side, or the passes are over.

    The start counts as known: only what it gets wrong is learned (passive-aggressive, with a bounded step).
    Examples that are `repeated` were counted before.
    """
    known = _scored(start, new)
    sure = [each.is_junk is (score > 0) for each, score in known if not SURE_WANTED < score < SURE_JUNK]
    agreed = sum(sure)
    taught = Taught(before.weights, before.agreed + agreed, before.contradicted + len(sure) - agreed)
    known += _scored(start, repeated)
    order = random.Random(seed)  # noqa: S311 - the order of examples is no secret
    for _ in range(PASSES):
        order.shuffle(known)
        for each, score in known:
            _learn_one(taught, each, score)
    return taught


def _scored(start: StartModel, examples: Iterable[Example]) -> list[tuple[Example, float]]:
    model = Model(start)
    return [(each, model.start_score(each.features)) for each in examples if each.features]


def _learn_one(taught: Taught, example: Example, before: float) -> None:
    side, own = 1 if example.is_junk else -1, taught.weights
    said = _sum(own, example.features)
    missing = MARGIN - side * (before + _within(said, taught.bound))
    if missing <= 0 or side * said >= taught.bound:  # more would count for nothing, and be hard to undo
        return
    most = STEP if example.is_junk else STEP * WANTED_STEP
    step = side * min(most, missing) / math.sqrt(len(example.features))
    for feature in example.features:
        own[feature] += step


def _total(weights: "Weights | list[float]", features: Sequence[int]) -> float:
    return sum(map(weights.__getitem__, features))


def _sum(weights: "Weights | list[float]", features: Sequence[int]) -> float:
    """Return the sum of weights, as of a vector of length 1: a long email does not count for more."""
    return _total(weights, features) / math.sqrt(len(features)) if features else 0.0


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def encode(weights: "Weights | list[float]") -> bytes:
    """Return weights as they are stored: 16 bits each, compressed."""
    steps = array("h", bytes(2 * SIZE))
    for feature, weight in enumerate(weights):
        if weight:  # most have none
            steps[feature] = max(-32_768, min(32_767, round(weight / STORED_STEP)))
    return zlib.compress(steps.tobytes(), 6)


def decode(stored: bytes) -> Weights:
    """Return stored weights; raises ValueError if these are none."""
    weights = no_weights()
    for feature, step in enumerate(_steps(stored)):
        if step:
            weights[feature] = step * STORED_STEP
    return weights


def _steps(stored: bytes) -> "array[int]":
    try:
        plain = zlib.decompressobj().decompress(stored, 2 * SIZE)
    except zlib.error as error:
        raise ValueError("weights cannot be read") from error
    if len(plain) != 2 * SIZE:
        raise ValueError("weights cannot be read")
    return array("h", plain)


@cache
def load_start() -> StartModel:
    """Return the model in the package, which `tools/junk_start.py` made: one bias, and a weight a feature."""
    stored = (resources.files("postroom_mail.junk") / "start.bin").read_bytes()
    steps = _steps(stored[2:])
    values = {step: step * STORED_STEP for step in set(steps)}  # few: the list names each, many times
    return StartModel([values[step] for step in steps], array("h", stored[:2])[0] * STORED_STEP)


def encode_features(features: Sequence[int]) -> bytes:
    return array("I", features).tobytes()


def decode_features(stored: bytes) -> tuple[int, ...]:
    return tuple(array("I", stored[: len(stored) // 4 * 4]))
