"""One-time codes in an email: recognised by form, position and a word that names them.

An unambiguous word ("verification code") needs less than an ambiguous one ("code").
Words are searched first, and candidates only around them, so that most mail is read once and quickly.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from postroom_mail.languages.patterns import by_first_letter, late
from postroom_mail.reading import code_words as code_words
from postroom_mail.reading.code_candidates import CANDIDATE, LETTER, fold
from postroom_mail.reading.code_marks import around, marks
from postroom_mail.reading.code_naming import Naming, written_together
from postroom_mail.reading.code_requests import asked_for

MAX_SEARCHED_CHARS = 100_000
MAX_CODES = 20
# A code is near the word that names it: further after the word than before it.
WINDOW_AFTER_WORD = 120
WINDOW_BEFORE_WORD = 60

_MAX_WORDS = 60
_MAX_CANDIDATES = 2_000
_TRIED_AFTER, _TRIED_BEFORE = 4, 2
_CANDIDATE_WINDOW = 40
_WHOLE = (*code_words.CERTAIN, *code_words.PLAIN, *code_words.PASSWORDS)
_JOINED = (*code_words.CERTAIN_JOINED, *code_words.PLAIN_JOINED, *code_words.PASSWORDS_JOINED)
APART = str.maketrans(
    {chr(code): " " for code in range(128) if not (chr(code).isalnum() or code == ord("_"))}
)


def _cues(words: Iterable[str]) -> frozenset[str]:
    """Return the cues, of which every word that names a code contains one. Most mail has none."""
    cues: set[str] = set()
    for pieces in sorted((word.translate(APART).split() for word in words), key=len):
        if cues.isdisjoint(pieces):
            cues.add(max(pieces, key=len))
    return frozenset(cues)


_LONGEST_WORD = 2 * max(map(len, _WHOLE))  # a blank in a word matches up to three
CUES = _cues(filter(str.isascii, _WHOLE))
_WINDOW_OF_MARK = WINDOW_AFTER_WORD + 2 * _CANDIDATE_WINDOW + _LONGEST_WORD
_WORD = late(lambda: f"{by_first_letter(_WHOLE, LETTER)}|{by_first_letter(_JOINED)}")
# ASCII words are all written with spaces; a set of other letters takes long to compile.
_ASCII_WORD = late(lambda: by_first_letter(filter(str.isascii, _WHOLE), r"\w"))


def codes(text: str, cues: Collection[str] | None = None) -> tuple[str, ...]:
    """Return one-time codes, in order and without repeats.

    Groups of digits are joined: 8842 1190 is 88421190.

    Codes with letters are as written, unless they are spread over cells.

    `cues` are the `CUES` found in an ASCII text, if known.
    """
    text = text[:MAX_SEARCHED_CHARS]
    asked = asked_for(text)
    if cues is None and text.isascii():
        cues = _cues_near_codes(text)
    if cues is not None and not cues:
        return _first_unique(map(_written, asked))
    folded = fold(text)
    words = _words(text, folded, cues)
    named = _named(text, folded, words) if words else []
    found = {candidate.start(): candidate for candidate in (*asked, *named)}
    return _first_unique(_written(found[start]) for start in sorted(found))


def _named(text: str, folded: str, words: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the candidates that one of the words names."""
    candidates = _candidates(text, words)
    starts = [candidate.start() for candidate in candidates]
    claimed: set[int] = set()
    for word in words:
        claimed.update(_claimed(Naming(text, folded, word), candidates, starts))
        if len(claimed) >= MAX_CODES:
            break
    return [candidates[place] for place in sorted(claimed)]


def _words(text: str, folded: str, cues: Collection[str] | None) -> list[re.Match[str]]:
    if not folded.isascii():
        return list(islice(_WORD.finditer(folded), _MAX_WORDS))
    known = _cues_near_codes(text) if cues is None else cues
    places = around(sorted(spot for cue in known for spot in _spots(folded, cue)), _LONGEST_WORD)
    found = (word for start, end in places for word in _whole_words(folded, start, end))
    return list(islice(found, _MAX_WORDS))


def _whole_words(folded: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Reads one character further, to see whether a letter follows the last word."""
    return (word for word in _ASCII_WORD.finditer(folded, start, end + 1) if word.end() <= end)


def _cues_near_codes(text: str) -> frozenset[str]:
    """Return cues near a digit or capitals, so that they may name them as a code."""
    near = " ".join(text[start:end] for start, end in around(marks(text), _WINDOW_OF_MARK))
    return CUES.intersection(fold(near).translate(APART).split())


def _spots(folded: str, cue: str) -> Iterator[int]:
    spot = folded.find(cue)
    while spot != -1:
        yield spot
        spot = folded.find(cue, spot + len(cue))


def _candidates(text: str, words: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for start, end in _merged(words):
        for candidate in CANDIDATE.finditer(text, start, end):
            found.append(candidate)
            if len(found) >= _MAX_CANDIDATES:
                return found
    return found


def _merged(words: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Return the ranges around the words in which a code may be, in order; those that touch are merged."""
    merged: list[tuple[int, int]] = []
    for word in words:
        start = max(0, word.start() - WINDOW_BEFORE_WORD - _CANDIDATE_WINDOW)
        end = word.end() + WINDOW_AFTER_WORD + _CANDIDATE_WINDOW
        if merged and start <= merged[-1][1]:
            start = merged.pop()[0]
        merged.append((start, end))
    return merged


def _claimed(naming: Naming, candidates: list[re.Match[str]], starts: list[int]) -> list[int]:
    """Return the candidate that the word names: the closest one that can be meant, on either side."""
    following = bisect_left(starts, naming.end)
    near = [
        (starts[place] - naming.end, place)
        for place in range(following, min(following + _TRIED_AFTER, len(starts)))
        if starts[place] - naming.end <= WINDOW_AFTER_WORD
    ]
    near += [
        (distance, place)
        for place in range(max(0, following - _TRIED_BEFORE), following)
        if 0 <= (distance := naming.start - candidates[place].end()) <= WINDOW_BEFORE_WORD
    ]
    return next(([place] for _, place in sorted(near) if naming.means(candidates[place])), [])


def _written(candidate: re.Match[str]) -> str:
    written = candidate.group()
    if candidate.lastgroup == "spread":
        return written_together(written)
    return "".join(filter(str.isdigit, written)) if not any(map(str.isalpha, written)) else written


def _first_unique(values: Iterator[str]) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for value in values:
        seen.setdefault(value)
        if len(seen) >= MAX_CODES:
            break
    return tuple(seen)
