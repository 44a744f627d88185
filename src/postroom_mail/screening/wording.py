"""Finds the sentences that match the wording rules."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from postroom_mail.screening.passage import Passage
from postroom_mail.screening.wording_rules import (
    OVERRIDE,
    SCRIPTS,
    Near,
    Script,
    Wording,
    anchors_by_sign,
    order_words,
    wordings,
)

MAX_SENTENCE_CHARS = 300
SENTENCE_OVERLAP = 100
MAX_SENTENCES = 24
NEGATION_WINDOW = 16
ORDER_WINDOW = 120

# Begins with a character set, which makes the search three times as fast.
_SENTENCE_END = re.compile(r"[.!?…;。！？；؟۔।\n](?:(?<![.!?…;])|(?=[\s\"'”»)]))")  # noqa: RUF001
# The same in ASCII: a single letter is found ten times faster than one of a set.
_ASCII_SENTENCE_ENDS = tuple(map(re.compile, (r"\n", *(rf"[{mark}](?=[\s\"')])" for mark in ".!?;"))))

Sentences = list[tuple[int, int]]


class Hit(Struct, frozen=True):
    """A rule that a sentence matches, and the positions of the sentence and of the first matching word."""

    rule: str
    start: int
    end: int
    anchor: int
    is_order: bool = False  # it also says what is to be done


def hits_by_rule(passage: Passage) -> Iterator[Iterator[Hit]]:
    """For each rule of each script the matching sentences, found lazily."""
    sentences: Sentences = []
    for script in SCRIPTS[:1] if passage.is_ascii else SCRIPTS:
        if passage.is_ascii or script.is_in(passage.letters):
            for wording, anchors in _possible(script, passage):
                yield _fulfilled(passage.folded, wording, anchors, sentences)


def _fulfilled(text: str, wording: Wording, possible: Iterable[str], sentences: Sentences) -> Iterator[Hit]:
    places: dict[int, int] = {}
    for anchor in possible:
        place = text.find(anchor)
        if place >= 0:
            if not sentences:
                sentences.extend(_sentences(text))
            _add_places(text, anchor, place, wording.is_spaced, sentences, places)
    for number in _chosen(sorted(places)):
        start, end = sentences[number]
        if _is_fulfilled(text, wording, start, end, places[number]):
            # "Ignore" is an order as well, and not counted twice.
            after = places[number] + 1 if wording.rule == OVERRIDE else start
            yield Hit(wording.rule, start, end, places[number], _is_order(text, wording, after, end))


def _possible(script: Script, passage: Passage) -> list[tuple[Wording, Sequence[str]]]:
    """The anchors that the text may contain; searching for all would take most of the time."""
    by_sign = anchors_by_sign(script)
    possible: dict[int, list[str]] = {}
    for sign in by_sign.keys() & passage.found:
        for number, anchor in by_sign[sign]:
            possible.setdefault(number, []).append(anchor)
    return [(wordings(script)[number], possible[number]) for number in sorted(possible)]


def _chosen(numbers: list[int]) -> list[int]:
    """The first and the last sentences, if there are too many."""
    half = MAX_SENTENCES // 2
    return numbers if len(numbers) <= MAX_SENTENCES else numbers[:half] + numbers[-half:]


def _add_places(
    text: str, anchor: str, place: int, is_spaced: bool, sentences: Sentences, places: dict[int, int]
) -> None:
    """The first position of the anchor in each sentence, by the sentence's number."""
    while place >= 0:
        if is_spaced and place and text[place - 1].isalnum():
            place = text.find(anchor, place + 1)
            continue
        number = bisect_right(sentences, (place, len(text))) - 1
        places[number] = min(place, places.get(number, place))
        place = text.find(anchor, max(place + 1, sentences[number][1]))


def _is_fulfilled(text: str, wording: Wording, start: int, end: int, anchor: int) -> bool:
    start = max(0, start - SENTENCE_OVERLAP) if end - start == MAX_SENTENCE_CHARS else start
    if wording.whole is not None and not wording.whole.search(text, start, end):
        return False
    first, last = max(0, start - wording.window), end + wording.window
    if not all(_are_near(text, near, first, last) for near in wording.near):
        return False
    if wording.unless is not None and wording.unless.search(text, start, end):
        return wording.despite is not None and wording.despite.search(text, start, end) is not None
    before = wording.unless_before
    return before is None or before.search(text, max(start, anchor - NEGATION_WINDOW), anchor) is None


def is_ordered(text: str, start: int, end: int) -> bool:
    """Return whether it contains an instruction, in a language of Latin letters."""
    told = order_words(SCRIPTS[0])
    return told is not None and told.search(text, start, end) is not None


def _is_order(text: str, wording: Wording, start: int, end: int) -> bool:
    return wording.then is not None and wording.then.search(text, start, end + ORDER_WINDOW) is not None


def _are_near(text: str, near: Near, start: int, end: int) -> bool:
    """One pass over the words of both kinds: each is compared with the last one of the other kind."""
    firsts = [(*found.span(), 0) for found in near.first.finditer(text, start, end)]
    seconds = [(*found.span(), 1) for found in near.second.finditer(text, start, end)] if firsts else []
    last = [-near.scope - 1, -near.scope - 1]
    for word_start, word_end, kind in sorted(firsts + seconds):
        if word_start - last[1 - kind] <= near.scope and (kind == 1 or not near.is_ordered):
            return True
        last[kind] = word_end
    return False


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of sentences; a very long one is cut."""
    start = 0
    patterns = _ASCII_SENTENCE_ENDS if text.isascii() else (_SENTENCE_END,)
    for end in sorted(found.end() for pattern in patterns for found in pattern.finditer(text)):
        yield from _cut(start, end)
        start = end
    yield from _cut(start, len(text))


def _cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE_CHARS:
        yield start, start + MAX_SENTENCE_CHARS
        start += MAX_SENTENCE_CHARS
    if end > start:
        yield start, end
