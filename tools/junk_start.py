"""Makes the model with which every junk filter starts: `python -m tools.junk_start WANTED JUNK [WANTED …]`.

Each argument is a folder of emails, one a file. Learned is the half of the files whose name's hash is even;
the other half is for judging (`python -m tests.mail.junk_figures`). The result has weights of hashed features
only: no email can be read from it.
"""

import hashlib
import math
import random
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from postroom_mail.html.page import read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.features import Features
from postroom_mail.junk.model import Example, StartModel
from postroom_mail.mime.parse import parse_mail
from tests.mail import kind_samples

PASSES = 6
ORDERS = 5
OWN_WEIGHT = 3  # the project's own samples of wanted mail are few, and of today
FIRST_SQUARES = 0.05
STEP = 1.0
BIAS_STEP = 0.02
WANTED_WEIGHT = 5.0
SMALLEST = 0.03  # a smaller weight is left out
LEARNED_WELL = 0.01  # an error too small to learn from
TARGET = Path(features.__file__).parent / "start.bin"


def main(folders: list[str]) -> None:
    examples = [each for each, is_learned in read_folders(folders) if is_learned]
    start = learn_start(examples)
    bias = array("h", [round(start.bias / model.STORED_STEP)]).tobytes()
    TARGET.write_bytes(bias + model.encode(start.weights))
    junk = sum(each.is_junk for each in examples)
    print(f"learned {junk} junk and {len(examples) - junk} wanted emails: {TARGET.stat().st_size} bytes")


class LabelledEmail(Struct, frozen=True):
    """An email of a collection, and its features."""

    raw: bytes
    features: Features
    is_junk: bool


def read_folders(folders: Sequence[str]) -> Iterator[tuple[LabelledEmail, bool]]:
    """Yield each file, and whether it belongs to the half that is learned."""
    for number, folder in enumerate(folders):
        for path in sorted(each for each in Path(folder).rglob("*") if each.is_file()):
            is_learned = hashlib.sha256(path.name.encode()).digest()[0] % 2 == 0
            yield to_labelled(path.read_bytes(), is_junk=number % 2 == 1), is_learned


def to_labelled(raw: bytes, is_junk: bool) -> LabelledEmail:
    mail = parse_mail(raw)
    return LabelledEmail(raw, features.read_features(raw, mail, read_page(mail.body_html)), is_junk)


def learn_start(examples: list[LabelledEmail]) -> StartModel:
    own = [to_labelled(each.raw(), is_junk=False) for each in kind_samples.read_all() if not each.is_held_out]
    learned = [*wholes(examples + own * OWN_WEIGHT), *pieces(examples + own)]
    return mean([train(learned, seed) for seed in range(ORDERS)])


def wholes(emails: Iterable[LabelledEmail]) -> list[Example]:
    return [Example(each.features.whole, each.is_junk) for each in emails]


def pieces(emails: Iterable[LabelledEmail]) -> list[Example]:
    """Each piece as an example: a wanted email must have no bad one, and junk hides behind good ones."""
    return [
        Example((*each.features.common, *piece), each.is_junk)
        for each in emails
        if sum(map(len, each.features.parts)) > 1
        for part in each.features.parts
        for piece in part
        if len(piece) >= model.LEAST_PIECE
    ]


def mean(models: Sequence[StartModel]) -> StartModel:
    """Of several orders of the same examples: a single one moves the figures by percents."""
    bias, columns = sum(each.bias for each in models), zip(*(each.weights for each in models), strict=True)
    weights = [sum(column) / len(models) for column in columns]
    return StartModel([weight if abs(weight) >= SMALLEST else 0.0 for weight in weights], bias / len(models))


def train(examples: Sequence[Example], seed: int) -> StartModel:
    """Logistic regression by gradients, each feature with a step of its own (AdaGrad)."""
    weights, squares, bias = [0.0] * features.SIZE, [FIRST_SQUARES] * features.SIZE, 0.0
    examples, order = list(examples), random.Random(seed)  # noqa: S311 - the order of examples is no secret
    for _ in range(PASSES):
        order.shuffle(examples)
        for each in examples:
            length = math.sqrt(len(each.features))
            score = sum(map(weights.__getitem__, each.features)) / length + bias
            error = model.probability(score) - each.is_junk
            if abs(error) < LEARNED_WELL:
                continue
            error *= 1.0 if each.is_junk else WANTED_WEIGHT
            bias -= BIAS_STEP * error
            for feature in each.features:
                squares[feature] += error * error
                weights[feature] -= STEP * error / math.sqrt(squares[feature])
    return StartModel(weights, bias)


if __name__ == "__main__":
    main(sys.argv[1:])
