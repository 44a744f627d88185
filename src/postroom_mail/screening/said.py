"""A text with its words, and what they look like: made once for all that search it for values."""

import re
import string
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, filterfalse

_LETTERS = bytes(string.ascii_letters, "ascii")
# In a text with one digit, one sign and one letter for all, which is searched at the speed of memchr.
_SHAPES = bytes.maketrans(b"0123456789 .()/-" + _LETTERS, b"0" * 10 + b"-" * 6 + b"a" * len(_LETTERS))
LONG = 10  # letters
_IS_LONG = bytes(size >= LONG for size in range(256))
_ONE = re.compile(b"\1")
_WITHOUT_SIGNS = _LETTERS + b"0123456789 ,.\n"
_MARKED_END = re.compile(r"\A[0-9@]|[0-9@]\Z")
_DIGIT = re.compile(r"[0-9]")


class Said:
    """`sizes` has the length of each word as a byte, and `letters` and `shapes` a byte for each character.

    `long` is where words of ten letters and more are, `signs` all but letters, digits, blanks, dots, commas.
    """

    __slots__ = (
        "_digits",
        "_odd",
        "has_digits",
        "letters",
        "long",
        "shapes",
        "signs",
        "sizes",
        "text",
        "words",
    )

    def __init__(self, text: str, most: int | None = None) -> None:
        """`most` is how many characters of it are read word by word."""
        self.text = text
        self.words = text[:most].split()
        self.sizes = sizes_of(self.words)
        self.letters = letters = _letters_of(text)
        self.shapes = letters.translate(_SHAPES)
        self.signs = letters.translate(None, _WITHOUT_SIGNS)
        flags = self.sizes.translate(_IS_LONG)
        self.long = [each.start() for each in _ONE.finditer(flags)] if 1 in flags else []
        self.has_digits = b"0" in self.shapes
        self._odd: set[str] | None = None
        self._digits: list[int] | None = None

    @property
    def odd(self) -> set[str]:
        """Return the words with more than letters, but for signs at their ends: some of them have a mark."""
        if self._odd is None:
            several = set(filterfalse(str.isalpha, self.words))
            self._odd = {word for word in several if not word[1:-1].isalpha() or _MARKED_END.search(word)}
        return self._odd

    def places_of(self, words: AbstractSet[str]) -> list[int]:
        """Return where these words are."""
        return list(compress(range(len(self.words)), map(words.__contains__, self.words))) if words else []

    def places_from(self, size: int) -> list[int]:
        """Return where words of so many letters and more are, at least LONG."""
        return [at for at in self.long if self.sizes[at] >= size]

    @property
    def digits(self) -> list[int]:
        """Return where words with a digit are."""
        if self._digits is None:
            self._digits = self.places_of(set(filter(_DIGIT.search, self.odd)))
        return self._digits


def sizes_of(words: Sequence[str]) -> bytes:
    """Return the length of each word as a byte, so that one pass finds the long and the short ones."""
    try:
        return bytes(map(len, words))
    except ValueError:  # one is longer than a byte says
        return bytes(min(len(word), 255) for word in words)


def shapes_of(text: str) -> bytes:
    return _letters_of(text).translate(_SHAPES)


def _letters_of(text: str) -> bytes:
    """Return a byte for each letter; ASCII needs no look at the others."""
    return text.encode() if text.isascii() else text.encode("latin-1", "replace")
