"""Encoded texts inside a text: base64, hexadecimal, percent, character references, rot13, reversed."""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from itertools import islice
from urllib.parse import unquote_plus

from postroom_mail.screening.passage import FEWEST_ENCODED_CHARS, HEX_MARKS, REVERSED, ROT13, Passage

MAX_RUNS = 8
MAX_RUN_CHARS = 1_500
MAX_LONG_WORDS_CHARS = 6_000
MAX_DECODED_CHARS = 4_000
MOST_NOISE = 0.1
FEWEST_PAIRS = 16
FEWEST_DIFFERENT_PAIRS = 5

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{28,}+(?>(?:\n[A-Za-z0-9+/_-]{4,}+)*)")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ :,\n]{0,2}){16,}+")
_HEX_NOISE = re.compile(r"0x|\\x|[ :,\n]")
_PERCENT = re.compile(r"(?<![\w.~%])[\w.~!'()*+-]{0,40}(?:%[0-9A-Fa-f]{2}[\w.~!'()*+-]{0,20}+){4,}+")
_REFERENCES = re.compile(r"(?:&#[xX]?[0-9A-Fa-f]{2,6};){8,}+")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}){8,}+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")


def decoded(text: Passage) -> str:
    """The readable texts encoded in a text, one paragraph each."""
    return "\n\n".join(_all(text))[:MAX_DECODED_CHARS]


def _all(text: Passage) -> Iterator[str]:
    if text.has_long_word:
        long = [word for word in text.shown.split() if len(word) >= FEWEST_ENCODED_CHARS]
        long_words = "\n".join(dict.fromkeys(long))[:MAX_LONG_WORDS_CHARS]
        yield from _runs(_BASE64, long_words, _from_base64)
        yield from _runs(_HEX, long_words, _from_hex)
        yield from _runs(_PERCENT, long_words, unquote_plus)
        yield from _runs(_REFERENCES, long_words, html.unescape)
        yield from _runs(_ESCAPES, long_words, _from_escapes)
    pairs = " ".join(_pairs(text))
    if len(pairs) >= 3 * FEWEST_PAIRS - 1:
        yield from _runs(_HEX, pairs[:MAX_LONG_WORDS_CHARS], _from_hex)
    yield from _turned(text)


def _pairs(text: Passage) -> list[str]:
    """Two-letter words and those marked as hexadecimal, if there are enough digits to spell a text."""
    if not text.has_any(HEX_MARKS) and not text.has_hex_pairs(FEWEST_DIFFERENT_PAIRS):
        return []
    return [word for word in text.shown.split() if len(word) == 2 or word[:2] in HEX_MARKS]


def _runs(pattern: re.Pattern[str], text: str, decode: Callable[[str], str]) -> Iterator[str]:
    for run in islice(pattern.finditer(text), MAX_RUNS):
        if readable := decode(run[0][:MAX_RUN_CHARS]):
            yield readable


def _from_base64(run: str) -> str:
    letters = run.replace("\n", "").replace("-", "+").replace("_", "/")
    letters = letters[:-1] if len(letters) % 4 == 1 else letters
    try:
        return _readable(base64.b64decode(letters + "=" * (-len(letters) % 4)))
    except binascii.Error:
        return ""


def _from_hex(run: str) -> str:
    digits = _HEX_NOISE.sub("", run)
    return _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _from_escapes(run: str) -> str:
    codes = (int(code, 16) for code in run.split("\\u")[1:] if len(code) == 4)
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _readable(content: bytes) -> str:
    """The bytes as text, or "" if they are noise."""
    text = content.decode("utf-8", "replace")
    return text if len(_CONTROL.findall(text)) <= MOST_NOISE * len(text) else ""


def _turned(text: Passage) -> Iterator[str]:
    for words, turn in ((ROT13, _rot13), (REVERSED, _backwards)):
        places = [text.folded.find(word) for word in text.found.intersection(words)]
        if places:
            first = min(places)
            yield turn(text.folded[max(0, first - 300) : first + 700])


def _rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _backwards(text: str) -> str:
    return text[::-1]
