"""What looks like a one-time code, and what around it speaks against that."""

import re
from functools import cache

from postroom_mail.languages.patterns import late, one_of
from postroom_mail.reading import code_words as code_words

# Thai, kana, Chinese and Hangul are written without a space before or after a number.
_UNSPACED = r"\u0e00-\u0e4f\u0e5a-\u0eff\u1100-\u11ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uff66-\uff9d"
LETTER = rf"[^\W{_UNSPACED}]"
_DASH = r"[ \u00a0\u2010-\u2014-]"
CANDIDATE = late(
    rf"(?<!{LETTER})(?<![\d.,/+=#&@%$€£¥₹₽₩~\\-])(?<!\d[ :\uff1a-])(?:"
    r"(?P<wordy>[a-z]{3,10}(?:-[a-z]{3,10}){1,2}-\d{1,4}|\d{1,4}(?:-[a-z]{3,10}){2})"
    r"|(?P<spread>\d(?:[\s|·-]{1,4}\d){3,7}|[A-Z0-9](?:[\s|·]{1,4}[A-Z0-9]){4,7})"
    rf"|(?P<digits>\d{{3}}{_DASH}\d{{3}}|\d{{4}}{_DASH}\d{{4}}|\d{{2}}{_DASH}\d{{2}}{_DASH}\d{{2}}|\d{{4,8}})"
    r"|(?P<prefixed>[A-Z]{1,3}-\d{4,8})"
    r"|(?P<pair>[A-Z0-9]{3,5}[\u2010-\u2013-][A-Z0-9]{3,5})"
    r"|(?P<mixed>(?=[A-Z]{0,8}[0-9])(?=[0-9]{0,8}[A-Z])[A-Z0-9]{4,8})"
    r"|(?P<small>(?=[A-Za-z]{0,9}[0-9])(?=[A-Z0-9]{0,9}[a-z])[A-Za-z0-9]{5,10})"
    r"|(?P<letters>[A-Z]{4,8})"
    rf")(?!{LETTER}|\d|[%€$£¥₹₽₩@/\\]|[.,:-]\d|-\w|[ -]\d\d|\s?[€$£¥₹₽₩])"
)
UNIT_BEHIND = late(lambda: rf"\s?(?:{one_of(code_words.UNITS)})(?!\w)")
_DATE_LIKE = re.compile(r"(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))?")
_NOT_WORDS = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """Return the text in lower case, character for character."""
    return text.replace("\u0130", "I").lower()  # the one letter that would grow


def is_date_like(written: str) -> bool:
    return _DATE_LIKE.fullmatch(written) is not None


def ends_with(text: str, words: tuple[str, ...], joined: tuple[str, ...] = ()) -> bool:
    """Return whether one of the words is last, ignoring punctuation."""
    last = _NOT_WORDS.sub(" ", text).rstrip()
    if f" {last}".endswith(_behind_space(words)):
        return True
    return bool(joined) and text.rstrip(" :\uff1a'\u2019_-").endswith(joined)


@cache
def _behind_space(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {word}" for word in words)
