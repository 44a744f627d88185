"""The same pattern with atomic groups, `(?>(?:ab)+)`, where it repeats a group possessively, `(?:ab)++`.

Python before 3.11.5 stands behind what the last, failed repetition of such a group took: `(?:\\.\\w+)++`
matches "a.b." to its end there (https://github.com/python/cpython/issues/106052).
"""

import random
import re
from collections.abc import Iterator
from typing import Any

POSSESSIVE = re.compile(r"\)([+*?]|\{\d*,?\d*\})\+")
SIGNS = " .:-\n%&#;\\\"'()ab01Ax/@,=<>u"
WORDS = ("104", "ab", "68", "%41", "&#65;", "\\u0041", ".b", "00", "AA=", " a= b", " ", "\n", ". ")


def twin_of(pattern: re.Pattern[Any]) -> re.Pattern[Any] | None:
    """None for a pattern that repeats no group possessively."""
    is_bytes = isinstance(pattern.pattern, bytes)
    written = str(pattern.pattern, "latin-1") if is_bytes else pattern.pattern
    changed = written
    while (found := next(_repeated(changed), None)) is not None:
        start, end, repeated = found
        behind = changed[end + len(repeated) + 2 :]
        changed = f"{changed[:start]}(?>{changed[start : end + 1]}{repeated}){behind}"
    if changed == written:
        return None
    return re.compile(changed.encode("latin-1") if is_bytes else changed, pattern.flags)


def _repeated(written: str) -> Iterator[tuple[int, int, str]]:
    """Where a group begins and ends that is repeated possessively, and how often."""
    opened: list[int] = []
    at = 0
    while at < len(written):
        if written[at] == "\\":
            at += 1
        elif written[at] == "[":
            at = written.index("]", at + 2 + (written[at + 1] == "^"))
            while written[at - 1] == "\\" and written[at - 2] != "\\":
                at = written.index("]", at + 1)
        elif written[at] == "(":
            opened.append(at)
        elif written[at] == ")":
            start = opened.pop()
            if found := POSSESSIVE.match(written, at):
                yield start, at, found[1]
        at += 1


def texts_for(pattern: re.Pattern[Any], count: int) -> Iterator[Any]:
    """Random texts of signs that the pattern names, and of words that other patterns read."""
    chance = random.Random(1)
    is_bytes = isinstance(pattern.pattern, bytes)
    written = str(pattern.pattern, "latin-1") if is_bytes else pattern.pattern
    signs = sorted(set(re.sub(r"\\.|[\[\](){}?*+|^$]", "", written) + SIGNS))
    for number in range(count):
        pieces = WORDS if number % 2 else signs
        text = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 40)))
        yield text.encode("latin-1", "ignore") if is_bytes else text
