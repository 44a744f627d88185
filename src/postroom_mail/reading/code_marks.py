"""Where a code may be in a long text: near a digit or capitals."""

import re
from collections.abc import Iterable, Iterator

# Each ASCII candidate contains one of these. Begins with a character set, which is found faster.
_MARK_OF_CODE = re.compile(r"[0-9A-Z](?:(?<=[0-9])|[A-Z]{2}|[\s|]{1,4}[0-9A-Z])")
_MARK_CHARS = 6
_NO_MARK = bytes(code for code in range(128) if not (chr(code).isdigit() or chr(code).isupper()))
_BLOCK_CHARS = 2_000


def marks(text: str) -> Iterator[int]:
    """Yield positions of digits and capitals, skipping blocks without any."""
    letters = text.encode("ascii", "replace")
    for start in range(0, len(text), _BLOCK_CHARS):
        if letters[start : start + _BLOCK_CHARS].translate(None, _NO_MARK):
            end = start + _BLOCK_CHARS + _MARK_CHARS
            yield from (mark.start() for mark in _MARK_OF_CODE.finditer(text, start, end))


def around(spots: Iterable[int], scope: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of this width on both sides of each position; those that touch are merged."""
    start = end = 0
    for spot in spots:
        if spot - scope > end:
            if end:
                yield start, end
            start = spot - scope
        end = spot + 2 * scope
    if end:
        yield start, end
