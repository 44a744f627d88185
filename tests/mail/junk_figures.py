"""How well the junk filter judges public collections: `python -m tests.mail.junk_figures WANTED JUNK […]`.

Each argument is a folder of emails, one a file, as for `tools/junk_start.py`. Judged are only files of the
half that the start model has not learned. No test needs a collection, and none is part of the project.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from postroom.inward.junk.examples import REPEATED
from postroom.inward.junk.learning import TOGETHER
from postroom_mail.html.page import read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.model import Example, Model, Taught
from postroom_mail.mime.parse import parse_mail
from tools.junk_start import read_folders

THRESHOLD = model.log_odds(0.9)
TYPICAL_BYTES = 5_000
MOST_WRONG = 0.001


def report(folders: Sequence[str]) -> Iterator[str]:
    read = list(read_folders(folders))
    learned = [each for each, is_learned in read if is_learned]
    judged = [each for each, is_learned in read if not is_learned]
    start = model.load_start()
    junk = sum(each.is_junk for each in judged)
    yield f"judged: {len(judged) - junk} wanted, {junk} junk"
    yield from figures("before any teaching", judged, Model(start).score)
    taught, others = judged[::2], judged[1::2]
    yield from figures("taught with half of these, judged on the other half", others, after(taught))
    yield from figures("taught with the half that the start has learned", judged, after(learned))
    for is_junk, said in ((True, "wanted emails junk"), (False, "junk wanted")):
        right = [each for each in taught if each.is_junk is not is_junk]
        wrong = [Example(each.features, is_junk) for each in right][:1_000]
        yield from figures(f"after one person called {len(wrong)} {said}", others, after(wrong))
    yield cost(folders)


def after(examples: Sequence[Example]) -> Callable[[Sequence[int]], float]:
    """As the server learns: 50 at a time in the order of the folders, with the newest of each kind before."""
    start = model.load_start()
    taught = Taught(model.no_weights())
    for at in range(0, len(examples), TOGETHER):
        old = examples[:at]
        again = [
            each
            for is_junk in (True, False)
            for each in [one for one in old if one.is_junk is is_junk][-REPEATED:]
        ]
        taught = model.learn(start, taught.weights, [*examples[at : at + TOGETHER], *again])
    return Model(start, (taught,)).score


def figures(name: str, judged: Sequence[Example], score: Callable[[Sequence[int]], float]) -> Iterator[str]:
    scored = sorted(((score(each.features), each.is_junk) for each in judged), reverse=True)
    junk = sum(is_junk for _, is_junk in scored)
    wanted = len(scored) - junk
    found = sum(is_junk for value, is_junk in scored if value >= THRESHOLD)
    wrong = sum(not is_junk for value, is_junk in scored if value >= THRESHOLD)
    yield f"{name}: at 0.9 {part(found, junk)} of the junk, {part(wrong, wanted)} of the wanted"
    allowed, reached = int(MOST_WRONG * wanted), 0
    for _, is_junk in scored:
        allowed -= not is_junk
        if allowed < 0:
            break
        reached += is_junk
    yield f"{name}: at {MOST_WRONG:.1%} of the wanted mail {reached / junk:.1%} of the junk"


def part(found: int, of: int) -> str:
    return f"{found} of {of} ({found / of:.2%})"


def cost(folders: Sequence[str]) -> str:
    """Of emails of about 5 kB: the processor's time for features and score, the best of five each."""
    small = [
        raw
        for folder in folders
        for path in sorted(each for each in Path(folder).rglob("*") if each.is_file())[:300]
        if TYPICAL_BYTES * 0.8 < len(raw := path.read_bytes()) < TYPICAL_BYTES * 1.2
    ]
    judge, total = Model(model.load_start()).score, 0.0
    for raw in small:
        mail = parse_mail(raw)
        page = read_page(mail.body_html)
        shown, times = mail.body_text or page.text, []
        for _ in range(5):
            began = time.process_time()
            judge(features.features(raw, mail, shown, page))
            times.append(time.process_time() - began)
        total += min(times)
    return f"processor: {total / len(small) * 1_000:.3f} ms for an email of 5 kB (mean of {len(small)})"


if __name__ == "__main__":
    for line in report(sys.argv[1:]):
        print(line)
