"""Text to index tokens: case and accents folded, whole words, scripts without spaces as pairs.

Tokens hold only letters, digits and vowel signs, so no database splits, folds or must escape them.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import add

from postroom_mail.languages.patterns import late

VERSION = 5  # raise it whenever the same email would give other tokens: the index is then rebuilt
MAX_TOKEN_CHARS = 64

# The patterns for non-ASCII text are compiled late: most text needs none of them.
# Scripts that are written without spaces, or join endings to words: Thai, Lao, Burmese, Hangul, Khmer, kana,
# Bopomofo and Han.
_PAIRED = (
    r"\u0e01-\u0eff\u1000-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u318f\u31a0-\u31ff\u3400-\u9fff"
    r"\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff\U00020000-\U0003ffff"
)
_PAIRED_CHARACTER = late(f"[{_PAIRED}]")
_WORD = re.compile(r"[^ ]+")
_RUN = late(f"[{_PAIRED}]+|[^ {_PAIRED}]+")
# What some systems decompose, above all in file names: Hangul letters, and the voicing marks of kana.
_WRITTEN_APART = late(
    r"[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[\uac00-\ud7a3][\u11a8-\u11c2]"
    r"|[\u3041-\u30ff][\u3099\u309a]|[\uff66-\uff9d][\uff9e\uff9f]"
)
_WRITTEN_BEHIND = late(r"[\u1161-\u1175\u11a8-\u11c2\u3099\u309a\uff9e\uff9f]")  # one of these, if any
_HANGUL_OR_KANA = late(r"[\u1100-\u11ff\u3041-\u30ff]")
# Accents, Hebrew and Arabic points, the Arabic joiner, voicing marks on their own, variation selectors.
# Signs of other scripts stay: without them an Indian word is a different word.
_ACCENT = late(
    r"[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]"
)
_WITHOUT_DECOMPOSITION = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_ASCII = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 0x20 for code in range(256))
_ASCII_OF_UTF_8 = _ASCII[:128] + bytes(range(128, 256))
_ASCII_CHARACTERS = bytes(range(128))
REPLACED_ONE_BY_ONE = 64  # up to this many distinct characters are replaced one at a time
_WITHOUT_LETTERS = bytes(0x20 if code == 0x20 else 0x78 for code in range(256))
_LONG = b"x" * (MAX_TOKEN_CHARS + 1)


def split(text: str) -> list[str]:
    """Return the tokens in order. A run of pairs ends in its last character alone.

    So every character of such a run begins exactly one token, and a single character is found as a prefix.
    """
    return split_folded(fold(text))


def split_folded(folded: str) -> list[str]:
    if is_spaced(folded):
        words = folded.split()
        return [word[:MAX_TOKEN_CHARS] for word in words] if _may_have_long_word(folded) else words
    return [token for run in _RUN.findall(folded) for token in _tokens_of(run)]


def _may_have_long_word(folded: str) -> bool:
    """Checks the bytes, which takes a fifth of the time of checking each word."""
    return _LONG in folded.encode().translate(_WITHOUT_LETTERS)


def split_sought(text: str) -> tuple[list[str], bool]:
    """Return the tokens to look for, in sequence, and whether the last is a prefix."""
    tokens = split(text)
    if not tokens or len(tokens[-1]) > 1 or not _PAIRED_CHARACTER.match(tokens[-1]):
        return tokens, False
    ends_a_run = len(tokens) > 1 and len(tokens[-2]) == 2 and _PAIRED_CHARACTER.match(tokens[-2]) is not None
    return (tokens[:-1], False) if ends_a_run else (tokens, True)


def compose(text: str) -> str:
    """Return the text with Hangul and kana composed; positions of tokens refer to this."""
    if text.isascii() or not _WRITTEN_BEHIND.search(_beyond_ascii(text)):
        return text
    return _WRITTEN_APART.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def span(folded: str, first: int, count: int) -> tuple[int, int]:
    """Return the range of `count` tokens in a folded text, from the first to the end of the last."""
    places = list(islice(_spans(folded), first, first + count))
    return places[0][1], places[-1][2]


def written(composed: str, start: int, end: int) -> tuple[int, int]:
    """Maps positions in the folded text to the composed text, including accents at the end."""
    origin = _origins(composed)
    behind = origin[end] if end < len(origin) else len(composed)
    return origin[start], max(origin[end - 1] + 1, behind)


def is_spaced(folded: str) -> bool:
    """Return whether spaces alone separate its tokens."""
    return folded.isascii() or not _PAIRED_CHARACTER.search(_beyond_ascii(folded))


def _beyond_ascii(text: str) -> str:
    """Return the non-ASCII characters of a text. In most languages these are few."""
    utf_8 = text.encode("utf-8", "surrogatepass")
    return utf_8.translate(None, _ASCII_CHARACTERS).decode("utf-8", "surrogatepass")


def fold(text: str) -> str:
    """Fold character by character, in linear time: normalising a text sorts its runs of marks, slowly."""
    if text.isascii():
        return text.encode("ascii").translate(_ASCII).decode("ascii")  # three times as fast as on a str
    return _fold_wide(compose(text))[: 2 * len(text) + 100]  # some single characters expand to eighteen


def _fold_wide(text: str) -> str:
    """Replace only the characters that need it: a tenth of the work of looking each one up."""
    folded = {character: _fold_character(character) for character in set(_beyond_ascii(text))}
    changed = {character: plain for character, plain in folded.items() if plain != character}
    if len(changed) > REPLACED_ONE_BY_ONE or not changed.keys().isdisjoint("".join(changed.values())):
        return text.translate({ord(character): _fold_character(character) for character in set(text)})
    utf_8 = text.encode("utf-8", "surrogatepass").translate(_ASCII_OF_UTF_8)
    text = utf_8.decode("utf-8", "surrogatepass")
    for character, plain in changed.items():
        text = text.replace(character, plain)
    return text


@lru_cache(maxsize=16_384)
def _fold_character(character: str) -> str:
    """Return the folded character: nothing for an ignored mark, a space for a separator."""
    category = unicodedata.category(character)
    if category.startswith("C"):
        return "" if category == "Cf" else " "
    if category == "Lo" and unicodedata.is_normalized("NFKD", character):
        return character
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character.casefold()).casefold())
    if _HANGUL_OR_KANA.search(plain):
        plain = unicodedata.normalize("NFC", plain)
    plain = _ACCENT.sub("", plain.translate(_WITHOUT_DECOMPOSITION))
    return "".join(_letter_or_space(part) for part in plain)


def _letter_or_space(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    is_letter = character.isalnum() or unicodedata.category(character) in ("Mn", "Mc")
    return character if is_letter else " "


def _spans(folded: str) -> Iterator[tuple[str, int, int]]:
    if folded.isascii():
        for word in _WORD.finditer(folded):
            yield word[0][:MAX_TOKEN_CHARS], word.start(), word.end()
        return
    for run in _RUN.finditer(folded):
        if _PAIRED_CHARACTER.match(run[0]):
            yield from (
                (token, at, at + len(token)) for at, token in enumerate(_tokens_of(run[0]), run.start())
            )
        else:
            yield run[0][:MAX_TOKEN_CHARS], run.start(), run.end()


def _tokens_of(run: str) -> list[str]:
    if _PAIRED_CHARACTER.match(run):
        return [*map(add, run, run[1:]), run[-1]]
    return [run[:MAX_TOKEN_CHARS]]


def _origins(composed: str) -> Sequence[int]:
    """Return for each character of the folded text the position of its original."""
    if composed.isascii():
        return range(len(composed))
    length = {character: len(_fold_character(character)) for character in set(composed)}
    if set(length.values()) == {1}:
        return range(len(composed))
    return [at for at, character in enumerate(composed) for _ in range(length[character])]
