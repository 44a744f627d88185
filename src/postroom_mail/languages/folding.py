# ruff: noqa: RUF001 (letters that look like others are the point)
"""Text in the form that rules compare: shortened, without invisible characters, in plain letters."""

import re
import unicodedata
from itertools import islice

MAX_MIXED_WORDS = 200
MAX_KEPT_LETTERS = 20_000

_CYRILLIC_LOOKALIKES = "асеорхуікмтнвзѕјһԁԛԝгь"
_LATIN_FOR_CYRILLIC = "aceopxyikmthb3sjhdqwrb"
_GREEK_LOOKALIKES = "αοενριτυκχωηγβ"
_LATIN_FOR_GREEK = "aoevpituxxwnyb"
TO_LATIN = str.maketrans(_CYRILLIC_LOOKALIKES + _GREEK_LOOKALIKES, _LATIN_FOR_CYRILLIC + _LATIN_FOR_GREEK)
TO_CYRILLIC = str.maketrans("aceopxyikmthb", "асеорхуікмтнв")
_ALIKE = str.maketrans("\u0649\u06cc\u06a9\u06c1\u0629ёđłıς’‘ʼ", "\u064a\u064a\u0643\u0647\u0647еdliσ'''")

_NOT_PLAIN_MARK = re.compile(r"[^\u0300-\u036f\u0653-\u0655]")
_MIXED_WORD = re.compile(
    r"(?<![a-z\u0370-\u052f])(?:[a-z]{1,30}+[\u0370-\u052f]|[\u0370-\u052f]{1,30}+[a-z])[a-z\u0370-\u052f]{0,30}+"
)
NO_WIDTH = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_APART = "".join(chr(code).lower() if chr(code).isalnum() or code == ord("_") else " " for code in range(128))
_OTHER_BLANKS = tuple(blank for blank in map(chr, range(0x3001)) if blank.isspace() and blank not in " \n")
_NO_LETTER = re.compile(r"[^\w ]")
_CYRILLIC = re.compile(r"[\u0400-\u052f]")
_LATIN = re.compile(r"[a-z]")
_OTHER = re.compile(r"[\u0370-\u052f]")


def bounded(text: str, limit: int) -> str:
    """Cut the middle of a longer text: three quarters of the rest are from the beginning."""
    return text if len(text) <= limit else f"{text[: limit * 3 // 4]}\n\n{text[-limit // 4 :]}"


def spaced(text: str) -> str:
    """Return text without invisible characters, one line per paragraph."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", NO_WIDTH.sub("", text))
    has_other_blanks = any(map(text.__contains__, _OTHER_BLANKS))
    return "\n".join(_in_a_line(paragraph, has_other_blanks) for paragraph in text.split("\n\n"))


def _in_a_line(paragraph: str, has_other_blanks: bool) -> str:
    """Put single blanks between words. Most texts have no others, which is checked first."""
    line = paragraph.strip(" \n").replace("\n", " ")
    return " ".join(paragraph.split()) if has_other_blanks or "  " in line else line


def apart(text: str) -> str:
    """Return its words in lower case, without punctuation, separated by single blanks."""
    words = text.translate(_APART) if text.isascii() else _NO_LETTER.sub(" ", text.lower())
    while "  " in words:  # half as long each time; most words have one or two between them
        words = words.replace("  ", " ")
    return words.strip(" ")


def folded(text: str) -> str:
    """Fold to lower case, without accents and typographic forms, each word in one script.

    The length is kept.
    """
    return in_one_script(plain_letters(text))


def plain_letters(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LETTERS)


def in_one_script(plain: str) -> str:
    return _MIXED_WORD.sub(_unmixed, plain, MAX_MIXED_WORDS) if _has_both_scripts(plain) else plain


def _has_both_scripts(plain: str) -> bool:
    return not plain.isascii() and _OTHER.search(plain) is not None and _LATIN.search(plain) is not None


class _Letters(dict[int, int]):
    """The plain form of each letter, computed on first use."""

    def __missing__(self, code: int) -> int:
        plain = ord(_plain_letter(chr(code)))
        if len(self) < MAX_KEPT_LETTERS:
            self[code] = plain
        return plain


_LETTERS = _Letters()


def _plain_letter(letter: str) -> str:
    parts = unicodedata.normalize("NFKD", letter)
    base = parts[0] if not _NOT_PLAIN_MARK.search(parts, 1) else letter
    lower = base.lower()
    return (lower if len(lower) == 1 else base).translate(_ALIKE)


def _unmixed(word: re.Match[str]) -> str:
    """Return a mixed word in the script of most of its characters."""
    text = word[0]
    is_cyrillic = len(_CYRILLIC.findall(text)) > len(_LATIN.findall(text))
    return text.translate(TO_CYRILLIC if is_cyrillic else TO_LATIN)


def mixed_word(plain: str) -> str:
    """Return the first word with characters of a second script that all look like those of the first."""
    if not _has_both_scripts(plain):
        return ""
    words = (found[0] for found in islice(_MIXED_WORD.finditer(plain), MAX_MIXED_WORDS))
    return next((word for word in words if len(word) > 3 and _deceives(word)), "")


def _deceives(word: str) -> bool:
    others = [letter for letter in word if not letter.isascii()]
    if len(others) * 2 <= len(word):
        return word[-1].isascii() and all(ord(letter) in TO_LATIN for letter in others)
    return all(ord(letter) in TO_CYRILLIC for letter in word if letter.isascii())
