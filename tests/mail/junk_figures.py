"""How well the junk filter judges public collections: `python -m tests.mail.junk_figures WANTED JUNK […]`.

Each argument is a folder of emails, one a file, as for `tools/junk_start.py`. Each half of the files is
judged by a start that has learned the other: the one of the package, and one that is made for this. Each
half of the judged ones teaches once, and the other is judged. So each email is judged once in each line, by
what has not learned it. No test needs a collection, and none is part of the project.
"""

import html
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from postroom.inward.junk.examples import REPEATED
from postroom.inward.junk.learning import TOGETHER
from postroom_mail.html.page import read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.features import Features
from postroom_mail.junk.model import Example, Model, StartModel, Taught
from postroom_mail.mime.parse import parse_mail
from tools.junk_start import LabelledEmail, learn_start, read_folders, to_labelled, wholes

Judge = Callable[[Features], float]
Scores = list[tuple[float, bool]]  # of each email, and whether it is junk

THRESHOLD = model.log_odds(0.9)
TYPICAL_BYTES = 5_000
MOST_WRONG = 0.001
WRONG_LESSONS = 1_000
GOOD_WORDS = 200
_OF_BODY = re.compile(rb"^(?:content-|mime-version)[^\n]*(?:\n[ \t][^\n]*)*\n?", re.IGNORECASE | re.MULTILINE)


def report(folders: Sequence[str]) -> Iterator[str]:
    read = list(read_folders(folders))
    learned = [each for each, is_learned in read if is_learned]
    judged = [each for each, is_learned in read if not is_learned]
    found: dict[str, Scores] = {}
    for start, known, new in (
        (model.load_start(), learned, judged),
        (learn_start(judged), judged, learned),
    ):
        for name, scores in of_half(start, known, new):
            found.setdefault(name, []).extend(scores)
    for name, scores in found.items():
        yield from figures(name, scores)
    yield cost(folders)


def of_half(
    start: StartModel, learned: Sequence[LabelledEmail], judged: Sequence[LabelledEmail]
) -> Iterator[tuple[str, Scores]]:
    yield "before any teaching", scores_of(judged, Model(start).score_email)
    for taught, others in ((judged[::2], judged[1::2]), (judged[1::2], judged[::2])):
        yield "taught with half, judged on the other half", scores_of(others, after(start, wholes(taught)))
        for is_junk, said in ((True, "wanted emails junk"), (False, "junk wanted")):
            wrong = [
                Example(each.features, is_junk) for each in wholes(taught) if each.is_junk is not is_junk
            ]
            judge = after(start, wrong[:WRONG_LESSONS])
            yield f"after one person called up to {WRONG_LESSONS} {said}", scores_of(others, judge)
    for kind, emails in stuffed(learned, judged).items():
        yield f"junk with {GOOD_WORDS} good words {kind}", scores_of(emails, Model(start).score_email)


def scores_of(emails: Sequence[LabelledEmail], judge: Judge) -> Scores:
    return [(judge(each.features), each.is_junk) for each in emails]


def after(start: StartModel, examples: Sequence[Example]) -> Judge:
    """As the server learns: 50 at a time in the order of the folders, with the newest of each kind before."""
    taught = Taught(model.no_weights())
    for at in range(0, len(examples), TOGETHER):
        old = examples[:at]
        again = [
            each
            for is_junk in (True, False)
            for each in [one for one in old if one.is_junk is is_junk][-REPEATED:]
        ]
        taught = model.learn(start, taught, examples[at : at + TOGETHER], again)
    return Model(start, (taught,)).score_email


def stuffed(
    learned: Sequence[LabelledEmail], judged: Sequence[LabelledEmail]
) -> dict[str, list[LabelledEmail]]:
    """Return what is judged, its junk with words of wanted email that the start has learned."""
    invent = random.Random(5)
    good = " ".join(text for each in learned if not each.is_junk and (text := text_of(each.raw))).split()
    wanted = [each for each in judged if not each.is_junk]
    found: dict[str, list[LabelledEmail]] = {}
    for each in judged:
        if each.is_junk:
            at = invent.randrange(len(good) - 2 * GOOD_WORDS)
            before, after_it = (" ".join(good[at + n : at + n + GOOD_WORDS]) for n in (GOOD_WORDS, 0))
            for kind, raw in stuff(each.raw, after_it, before).items():
                found.setdefault(kind, []).append(to_labelled(raw, is_junk=True))
    return {kind: wanted + emails for kind, emails in found.items()}


def text_of(raw: bytes) -> str:
    mail = parse_mail(raw)
    return mail.body_text or read_page(mail.body_html).text


def stuff(raw: bytes, good: str, before: str) -> dict[str, bytes]:
    """Return a junk email in several forms, each with good words."""
    mail, text = parse_mail(raw), text_of(raw)
    head = _OF_BODY.sub(b"", raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n")
    page, words = mail.body_html or f"<p>{html.escape(mail.body_text)}</p>", html.escape(good)
    plain, rich = "Content-Type: text/plain; charset=utf-8\n\n", "Content-Type: text/html; charset=utf-8\n\n"
    both = f"--qq\n{plain}{good}\n--qq\n{rich}{page}\n--qq--\n"
    bodies = {
        "at the end": f"{plain}{text}\n\n{good}",
        "before and behind": f"{plain}{before}\n\n{text}\n\n{good}",
        "hidden in HTML": f'{rich}<div style="display:none">{words}</div>{page}',
        "as plain text": f"Content-Type: multipart/alternative; boundary=qq\n\n{both}",
        "beside a picture alone": f'{rich}<a href="http://x.example/"><img src="http://x.example/a.png"></a>{words}',
    }
    return {
        kind: head + b"MIME-Version: 1.0\n" + body.encode("utf-8", "replace") for kind, body in bodies.items()
    }


def figures(name: str, scores: Scores) -> Iterator[str]:
    scored = sorted(scores, reverse=True)
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
    judge, total = Model(model.load_start()).score_email, 0.0
    for raw in small:
        mail = parse_mail(raw)
        page, times = read_page(mail.body_html), []
        for _ in range(5):
            began = time.process_time()
            judge(features.read_features(raw, mail, page))
            times.append(time.process_time() - began)
        total += min(times)
    return f"processor: {total / len(small) * 1_000:.3f} ms for an email of 5 kB (mean of {len(small)})"


if __name__ == "__main__":
    for line in report(sys.argv[1:]):
        print(line)
