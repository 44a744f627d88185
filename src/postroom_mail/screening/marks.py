"""Signs of a value in a text: most texts of people have none, which is found out at the speed of memchr."""

import re

from postroom_mail.screening.said import Said

# Of the shapes of a text: digits with at most two signs between each, enough for a code.
_NUMBER = re.compile(rb"0(?:-{0,2}0){3,}+")
_MARKED = re.compile(r"[0-9@]|[^\W_][.:/][\w/]")
# A text with one letter and one digit for all, and one sign for two: what a mark looks like in it.
_LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalpha())
_SHAPES = bytes.maketrans(b"123456789:" + _LETTERS, b"000000000." + b"a" * len(_LETTERS))
_MARK_SHAPES = (b"a.a", b"a./", b"a/a", b"a//", b"a._", b"a/_")


def may_be_marked(text: str) -> bool:
    """Return whether a word of a text may have a mark of a value. Most texts of people have none."""
    if "@" in text:
        return True
    shapes = text.encode(errors="replace").translate(_SHAPES)
    if b"0" in shapes:
        return True
    dots = shapes.count(b".")
    if b"/" not in shapes and (
        dots == (blanks := shapes.count(b". "))
        or dots == blanks + shapes.count(b".\n") + shapes.endswith(b".")
    ):  # each ends a sentence
        return False
    return any(map(shapes.__contains__, _MARK_SHAPES))


def marked_of(said: Said) -> list[str]:
    """Return the words that have a mark, in order; each is looked at once."""
    marked = set(filter(_MARKED.search, said.odd))
    return list(filter(marked.__contains__, said.words)) if marked else []


def numbers_in(said: Said) -> list[str]:
    """Return the numbers that are long enough for a one-time code, as they are written."""
    return [said.text[number.start() : number.end()] for number in _NUMBER.finditer(said.shapes)]
