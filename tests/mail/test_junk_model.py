"""The junk filter's model: what it starts with, what one teacher can do, and what any bytes cost."""

import random

from postroom_mail.html.page import NO_PAGE, read_page
from postroom_mail.junk import features, model
from postroom_mail.junk.model import Example, Model, Taught
from postroom_mail.mime.parse import parse_mail
from tests.api.test_junk import offer
from tests.mail import kind_samples
from tests.mail.junk_figures import GOOD_WORDS, stuff
from tools.junk_start import to_labelled, wholes

JUNK = 2.2  # a score of 0.9
MOST_FEATURES = 1_600


def test_no_wanted_sample_that_the_start_has_not_learned_is_junk() -> None:
    start = Model(model.load_start())
    held_out = [each for each in kind_samples.read_all() if each.is_held_out]
    assert len(held_out) >= 100
    assert [
        each.subject for each in held_out if start.score_email(to_labelled(each.raw(), False).features) > 0
    ] == []


def test_good_words_added_to_junk_do_not_hide_it() -> None:
    start = Model(model.load_start())
    wanted = [each.body for each in kind_samples.read_all() if each.category == "personal"]
    good = " ".join(" ".join(wanted).split()[:GOOD_WORDS])
    clear = start.score_email(to_labelled(offer(), is_junk=True).features)
    assert clear >= JUNK
    forms = stuff(offer(), good, good)
    for kind in ("at the end", "hidden in HTML", "as plain text"):
        assert start.score_email(to_labelled(forms[kind], is_junk=True).features) >= clear - 0.7, kind
    assert (
        start.score_email(to_labelled(b"From: a@work.example\r\n\r\n" + good.encode(), False).features) < JUNK
    )


def test_disguised_letters_are_read_as_what_they_look_like() -> None:
    """Without width between them, in full width, and of another script."""
    start = Model(model.load_start())
    head, _, text = offer().decode().partition("\r\n\r\n")
    head += "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    clear = judged(start, head + text)
    wide = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text)
    nothing = "\u200b" * 5_000
    for disguised in (f"{nothing}{text}{nothing}", "\u200b".join(text), text.replace("e", "e\u00ad"), wide):
        assert judged(start, head + disguised) >= clear - 0.5
    assert judged(start, head + text.translate(str.maketrans("aeo", "аео"))) >= clear - 0.8  # noqa: RUF001


def judged(start: Model, written: str) -> float:
    return start.score_email(to_labelled(written.encode(), is_junk=True).features)


def test_what_one_teacher_says_has_a_bound_and_what_is_said_otherwise_is_undone() -> None:
    start, own = model.load_start(), model.no_weights()
    wanted = wholes(to_labelled(each.raw(), is_junk=False) for each in kind_samples.read_all())
    wrong = [Example(each.features, is_junk=True) for each in wanted] * 5
    assert len(wrong) >= 1_000
    taught = model.learn(start, Taught(own), wrong)
    assert taught.bound < 1, "who contradicts what the start is sure of counts for little"
    poisoned = Model(start, (taught,))
    for each in wanted:
        moved = poisoned.score(each.features) - start_score(each)
        assert 0 <= moved <= taught.bound + 1e-9
    others = Model(start, (Taught(own),) * 4)
    assert all(others.score(each.features) - start_score(each) <= model.TAUGHT_BOUND for each in wanted)
    assert sum(poisoned.score(each.features) >= JUNK for each in wanted) == 0
    corrected = Model(start, (model.learn(start, taught, wanted * 3),))
    assert all(corrected.score(each.features) < 0 for each in wanted)


def test_a_teacher_who_only_mends_mistakes_of_the_start_counts_whole_or_nearly() -> None:
    """The buttons are used where the filter was wrong: some contradictions are what they are for."""
    none = model.no_weights()
    assert Taught(none).bound == Taught(none, agreed=1_000).bound == 3
    assert Taught(none, contradicted=5).bound > 2.2
    assert Taught(none, contradicted=300).bound < 0.2
    assert Taught(none, agreed=300, contradicted=300).bound < 1.6


def test_wrong_examples_count_on_when_right_ones_have_followed() -> None:
    """Otherwise a teacher could be right for a while, and the wrong weights would count again."""
    start = model.load_start()
    junk = to_labelled(offer(), is_junk=True).features.whole
    wanted = wholes(to_labelled(each.raw(), is_junk=False) for each in kind_samples.read_all()[:100])
    taught = model.learn(start, Taught(model.no_weights()), [Example(junk, is_junk=False)] * 300)
    after = model.learn(start, taught, wanted * 3)
    assert after.contradicted == taught.contradicted == 300
    assert Model(start, (after,)).score(junk) >= start_score(Example(junk, True)) - 1.6


def start_score(each: Example) -> float:
    return Model(model.load_start()).score(each.features)


def test_any_bytes_have_few_features_and_weights_are_stored_as_they_are() -> None:
    invent = random.Random(20261119)
    for raw in (
        b"",
        b"\0" * 100_000,
        invent.randbytes(50_000),
        b"A" * 200_000,
        "漢字だけの長い文章".encode() * 5_000,
        b"X: y\r\n" * 20_000,
        b"Content-Type: text/html\r\n\r\n" + b"<a href='http://x.example/'>" * 5_000,
    ):
        mail = parse_mail(raw)
        found = features.read_features(raw, mail, read_page(mail.body_html))
        assert len(found.whole) == len(set(found.whole)) <= MOST_FEATURES
        assert all(0 <= each < features.SIZE for each in found.whole)
        assert abs(Model(model.load_start()).score_email(found)) <= model.START_BOUND
    empty = parse_mail(b"")
    assert Model(model.load_start()).score_email(features.read_features(b"", empty, NO_PAGE)) < JUNK
    weights = model.no_weights()
    weights[7], weights[9] = 1.5, -0.25
    assert model.decode(model.encode(weights)) == weights
    for damaged in (b"", b"nonsense", model.encode(weights)[:50]):
        try:
            model.decode(damaged)
        except ValueError:
            continue
        raise AssertionError(damaged)
