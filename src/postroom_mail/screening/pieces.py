"""Account numbers, telephone numbers and tokens that are written in pieces: with any signs, or in many words.

Words with digits that stand together, and short ones between and around them, are read as one without their
signs. A token is known by twelve of its letters and digits, which no sign, case or letter around it hides.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from operator import ne
from zlib import crc32

from postroom_mail.screening import checksums

PART = 12  # letters and digits by which a token is known
MOST_PARTS = 1_000  # of tokens that are kept
CHANGES = 3  # between letters and digits in a part
MOST_RUNS = 500
MOST_LETTERS = 2_000  # of a run
SHORT, AROUND = 4, 3  # words that belong to a run: how long they are, and how many on each side
SHORTEST = 4
SHORTEST_IBAN = min(checksums.IBAN_LENGTHS.values())
SHORTEST_ACCOUNT = 32  # letters and digits of a hash or an address of a cryptocurrency
LONGEST_NUMBER = 40  # digits: a longer one is a table
_HOST = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\W*")
_SIGNS = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"[0-9]+")
_DIGITS = re.compile(r"[0-9]{4,}")
_IBAN_HEAD = re.compile(r"([A-Z]{2})[0-9]{2}")
_HASH = re.compile(r"[0-9a-f]{32,}")
_BECH32 = re.compile(r"(?:bc|tb|ltc)1[02-9ac-hj-np-z]{30,80}")
_ETHEREUM = re.compile(r"0x[0-9a-f]{40}")


def runs_in(words: Sequence[str], numbers: Iterable[int]) -> Iterator[str]:
    """Yield letters and digits of words that may be pieces of one value; `numbers` is where digits are."""
    places = [at for at in numbers if words[at].count(".") < 3 or not _HOST.fullmatch(words[at])]
    end = 0
    for start, last in islice(_neighbours(places), MOST_RUNS):
        first = _reach(words, start, -1, min(start, max(end, start - AROUND)))
        end = _reach(words, last, 1, min(len(words) - 1, last + AROUND)) + 1
        run = _SIGNS.sub("", "".join(words[first:end]))[:MOST_LETTERS]
        if len(run) >= SHORTEST:
            yield run


def _neighbours(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of places with at most one other between two of them."""
    if not places:
        return
    start = last = places[0]
    for at in places[1:]:
        if at - last > 2:
            yield start, last
            start = at
        last = at
    yield start, last


def _reach(words: Sequence[str], at: int, step: int, bound: int) -> int:
    while at != bound and len(words[at + step]) <= SHORT:
        at += step
    return at


@lru_cache(maxsize=MOST_PARTS)
def part_of_token(token: str) -> str:
    """Return the part by which a token is known in every spelling; all of it if none is mixed enough."""
    parts = parts_in(_SIGNS.sub("", token))
    return min(parts, key=_order) if parts else token


def parts_in(run: str) -> list[str]:
    """Return all parts of a run by which a token could be known: letters and digits take turns in them."""
    if len(run) < PART or run.isalpha() or run.isdigit() or (run.isascii() and _changes_in(run) < CHANGES):
        return []
    small = run.lower()
    kinds = list(map(str.isdigit, small))
    changes = list(accumulate(map(ne, kinds, kinds[1:]), initial=0))
    last = len(small) - PART + 1
    return [small[at : at + PART] for at in range(last) if changes[at + PART - 1] - changes[at] >= CHANGES]


def _changes_in(run: str) -> int:
    """Return how often letters and digits of ASCII take turns in all of it."""
    return 2 * len(_NUMBER.findall(run)) - run[0].isdigit() - run[-1].isdigit()


def _order(part: str) -> int:
    return crc32(part.encode(errors="replace"))


def ibans_in(runs: str) -> Iterator[str]:
    large = runs.upper()
    for head in _IBAN_HEAD.finditer(large):
        start, length = head.start(), checksums.IBAN_LENGTHS.get(head[1], 0)
        written = large[start : start + length]
        if length and written.isalnum() and checksums.is_iban(written):
            yield written


def digits_in(runs: str) -> Iterator[str]:
    """Yield digits that stand together once the signs between them are left out."""
    return (digits[0] for digits in _DIGITS.finditer(runs) if len(digits[0]) <= LONGEST_NUMBER)


def cards_in(digits: str) -> Iterator[str]:
    for length in checksums.CARD_LENGTHS:
        for at in range(len(digits) - length + 1):
            if checksums.is_card(card := digits[at : at + length]):
                yield card


def hashes_in(runs: str, lengths: Iterable[int]) -> Iterator[str]:
    for found in _HASH.finditer(runs.lower()):
        for length in lengths:
            for at in range(min(len(found[0]) - length + 1, PART)):
                yield found[0][at : at + length]


def accounts_in(runs: str) -> Iterator[str]:
    """Yield what may be an address of a cryptocurrency that is written in small letters."""
    small = runs.lower()
    yield from (found[0] for pattern in (_BECH32, _ETHEREUM) for found in pattern.finditer(small))
