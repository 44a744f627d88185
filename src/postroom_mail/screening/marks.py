"""Signs of a value in a text: most texts of people have none, which is found out at the speed of memchr."""

import re
import string
from collections.abc import Iterator, Sequence
from itertools import filterfalse

# In a text with one digit, one sign and one letter for all, which is searched at the speed of memchr:
# digits with at most two signs between each, enough for a code, for a telephone number or an account.
_NUMBER = re.compile(rb"0(?:-{0,2}0){3,}+")
_MARKED = re.compile(r"[0-9@]|[^\W_][.:/][\w/]")
# A text with one letter and one digit for all, and one sign for two: what a mark looks like in it.
_LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalpha())
_SHAPES = bytes.maketrans(b"123456789:" + _LETTERS, b"000000000." + b"a" * len(_LETTERS))
_NUMBER_SHAPES = bytes.maketrans(
    b"0123456789 .()/-" + bytes(string.ascii_letters, "ascii"),
    b"0" * 10 + b"-" * 6 + b"a" * len(string.ascii_letters),
)
_MARK_SHAPES = (b"0", b"@", b"a.a", b"a./", b"a/a", b"a//", b"a._", b"a/_")


def may_be_marked(text: str) -> bool:
    """Return whether a word of a text may have a mark of a value. Most texts of people have none."""
    shapes = text.encode(errors="replace").translate(_SHAPES)
    return any(map(shapes.__contains__, _MARK_SHAPES))


def marked_of(words: Sequence[str]) -> list[str]:
    """Return the words that have a mark, in order; each is looked at once."""
    marked = set(filter(_MARKED.search, filterfalse(str.isalpha, set(words))))
    return list(filter(marked.__contains__, words))


def numbers_in(text: str) -> Iterator[str]:
    """Yield the numbers that are long enough for a one-time code, as they are written."""
    for number in _NUMBER.finditer(shapes_of(text)):
        yield text[number.start() : number.end()]


def shapes_of(text: str) -> bytes:
    return text.encode("latin-1", "replace").translate(_NUMBER_SHAPES)
