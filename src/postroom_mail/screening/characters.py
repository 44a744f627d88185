"""Invisible characters and lookalikes, and what they spell."""

import re
from collections.abc import Iterator
from itertools import islice

MAX_DECODED_CHARS = 2_000
MAX_RUNS = 4
FEWEST_IN_WORDS = 3

# Flags of regions are written as tag characters after a black flag; any other use is suspicious.
_TAGS = re.compile(r"(?<!\U0001f3f4)(?<![\U000e0020-\U000e007e])[\U000e0020-\U000e007e]{6,2000}")
_SELECTORS = re.compile(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,2000}")
_BITS = re.compile(r"[\u200b\u200c\u200d\u2060\u2062-\u2064\ufeff]{16,4000}")
_IN_WORD = re.compile(r"(?<=[A-Za-z])[\u200b-\u200d\u2060-\u2064\ufeff\u180e]{1,8}(?=[A-Za-z])")
_TURNED = re.compile(r"[\u202d\u202e]")
_INTERESTING = re.compile(
    r"[\u180e\u200b-\u200d\u202d\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0020-\U000e01ef]"
)
_AROUND = 30


def has_invisible(text: str) -> bool:
    return not text.isascii() and _INTERESTING.search(text) is not None


def smuggled(text: str) -> Iterator[str]:
    """Return what runs of invisible characters spell; "" if nothing readable."""
    for run in islice(_TAGS.finditer(text), MAX_RUNS):
        yield "".join(chr(ord(letter) - 0xE0000) for letter in run[0])
    for run in islice(_SELECTORS.finditer(text), MAX_RUNS):
        yield _readable(bytes(_selector_value(letter) for letter in run[0]))
    yield from filter(None, (_from_bits(run[0]) for run in islice(_BITS.finditer(text), MAX_RUNS)))


def _selector_value(letter: str) -> int:
    code = ord(letter)
    return code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16


def _readable(content: bytes) -> str:
    try:
        text = content[:MAX_DECODED_CHARS].decode("ascii")
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""


def _from_bits(run: str) -> str:
    """Two characters may encode the bits of a text, in either order."""
    kinds = sorted(set(run))
    if len(kinds) != 2:
        return ""
    for zero, one in (kinds, reversed(kinds)):
        bits = run.replace(zero, "0").replace(one, "1")
        content = bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8))
        if text := _readable(content):
            return text
    return ""


def split_words(text: str) -> str:
    """A piece of the text in which zero-width characters split words; "" if there is none."""
    places = list(islice(_IN_WORD.finditer(text), FEWEST_IN_WORDS))
    if len(places) < FEWEST_IN_WORDS:
        return ""
    first = places[0]
    return text[max(0, first.start() - _AROUND) : first.end() + _AROUND]


def turned(text: str) -> str:
    found = _TURNED.search(text)
    return text[max(0, found.start() - _AROUND) : found.end() + _AROUND] if found else ""
