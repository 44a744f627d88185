"""Codes that no word names: `Use 482193 to sign in`. A verb next to the digits asks for them, and the same
sentence is about signing in.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from string import digits

from postroom_mail.languages.patterns import late, one_of
from postroom_mail.reading import code_words as code_words
from postroom_mail.reading.code_candidates import CANDIDATE, UNIT_BEHIND, ends_with, fold, is_date_like

# An email with a code is short, and has it near its beginning.
SEARCHED_CHARS = 2_000
_MOST_TRIED = 20
_SENTENCE_WINDOW = 100
_MATTER_WINDOW = 160
_FEWEST_DIGITS, _SHORT_CODE = 6, 4

# They begin with a character set, which is found faster; the narrower set is for texts without other digits.
_DIGITS = re.compile(r"\d\d{2}[\d \u00a0-]\d{0,4}")
_ASCII_DIGITS = re.compile(r"[0-9][0-9]{2}[0-9 -][0-9]{0,4}")
_SENTENCE_STARTS = re.compile(r".*(?:[.!?]\s|[\u3002\uff01\uff1f]|\n\s*\n)", re.S)
_SENTENCE_ENDS = re.compile(r"[.!?](?:\s|\Z)|[\u3002\uff01\uff1f]|\n\s*\n")
_ASKING_BEHIND = late(lambda: rf"[\s*_`\"'\u201d\u00bb]{{0,4}}(?:{one_of(code_words.ASKING_BEHIND)})(?!\w)")
_ASKING_BEHIND_JOINED = late(lambda: rf"\s?(?:{one_of(code_words.ASKING_BEHIND)})")
_SHORT_WORD = re.compile(r"\s\w{1,3}\s*\Z")
_SIGNING_IN = late(lambda: one_of(code_words.SIGNING_IN))
_OTHER_MATTER = late(lambda: one_of(code_words.OTHER_MATTERS))


def asked_for(text: str) -> list[re.Match[str]]:
    head = text[:SEARCHED_CHARS]
    possible = [each for each in islice(_runs_of_digits(head), _MOST_TRIED) if _may_be_code(each[0])]
    return list(_asked_for(head, fold(head), possible)) if possible else []


def _runs_of_digits(head: str) -> Iterator[re.Match[str]]:
    if not head.isascii():
        return _DIGITS.finditer(head)
    last = max(map(head.rfind, digits))
    return _ASCII_DIGITS.finditer(head, 0, last + 2)


def _asked_for(head: str, folded: str, possible: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    for each in possible:
        if _is_asked_for(folded, each):
            candidate = CANDIDATE.match(head, each.start())
            if candidate is not None and candidate.lastgroup == "digits":
                yield candidate


def _may_be_code(written: str) -> bool:
    digits = sum(map(str.isdigit, written))
    return (digits >= _FEWEST_DIGITS or digits == _SHORT_CODE) and not is_date_like(written)


def _is_asked_for(folded: str, candidate: re.Match[str]) -> bool:
    start, end = candidate.span()
    before = _SENTENCE_STARTS.sub("", folded[max(0, start - _SENTENCE_WINDOW) : start], count=1)
    behind = _SENTENCE_ENDS.split(folded[end : end + _SENTENCE_WINDOW], maxsplit=1)[0]
    is_asked = _ends_asking(before) or _is_asked_behind(behind)
    if not is_asked or UNIT_BEHIND.match(behind):
        return False
    if _SIGNING_IN.search(f"{before} {behind}") is None:
        return False
    around = folded[max(0, start - _MATTER_WINDOW) : end + _MATTER_WINDOW]
    return _OTHER_MATTER.search(around) is None


def _ends_asking(before: str) -> bool:
    """Allow at most one short word between the verb and the digits: "type in", "the"."""
    return ends_with(before, code_words.ASKING) or ends_with(_SHORT_WORD.sub("", before), code_words.ASKING)


def _is_asked_behind(behind: str) -> bool:
    pattern = _ASKING_BEHIND if behind.isascii() else _ASKING_BEHIND_JOINED
    return pattern.match(behind) is not None
