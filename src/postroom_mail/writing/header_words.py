"""Words of a header field (RFC 5322, RFC 2047): bare, quoted or encoded; none can end the line."""

import binascii
import re
from collections.abc import Callable, Iterator

WORD_LIMIT = 60  # leaves room for the longest of our field names on the first line
ATEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
PLAIN_TEXT = re.compile(rf"[!-~]{{1,{WORD_LIMIT}}}(?: [!-~]{{1,{WORD_LIMIT}}})*")
ATOMS = re.compile(rf"[{ATEXT}]{{1,{WORD_LIMIT}}}(?: [{ATEXT}]{{1,{WORD_LIMIT}}})*")
QUOTABLE = re.compile(r"[ -~]*")
# RFC 2047 section 5 (3): the characters that may stand for themselves in a phrase.
Q_BYTES = [chr(b) if (b < 128 and chr(b).isalnum()) or b in b"!*+-/" else f"={b:02X}" for b in range(256)]
Q_BYTES[ord(" ")] = "_"


class DraftError(ValueError):
    """A field that cannot be written into an email."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def require_no_control(field: str, value: str) -> None:
    if CONTROL.search(value):
        raise DraftError(field, "control character")


def text_words(field: str, value: str) -> list[str]:
    require_no_control(field, value)
    if PLAIN_TEXT.fullmatch(value) and "=?" not in value:
        return value.split(" ")
    return encoded_words(value)


def phrase_words(name: str) -> list[str]:
    """Return a display name: bare, quoted or encoded. "=?" is always encoded: it is decoded in quotes too."""
    if "=?" in name or not QUOTABLE.fullmatch(name):
        return encoded_words(name)
    if len(name) + 2 <= WORD_LIMIT and ATOMS.fullmatch(name):
        return name.split(" ")
    quoted = '"{}"'.format(re.sub(r'(["\\])', r"\\\1", name))
    return [quoted] if len(quoted) <= WORD_LIMIT else encoded_words(name)


def encoded_words(value: str) -> list[str]:
    """Return RFC 2047 words in the shorter of both encodings, cut only between characters."""
    if len(q_text(value)) > len(b_text(value)):
        return [f"=?utf-8?b?{b_text(piece)}?=" for piece in cut(value, 36, lambda char: len(char.encode()))]
    return [f"=?utf-8?q?{q_text(piece)}?=" for piece in cut(value, 48, lambda char: len(q_text(char)))]


def q_text(value: str) -> str:
    return "".join(Q_BYTES[byte] for byte in value.encode())


def b_text(value: str) -> str:
    return binascii.b2a_base64(value.encode(), newline=False).decode()


def cut(value: str, room: int, size: Callable[[str], int]) -> Iterator[str]:
    """Yield consecutive pieces of at least one character whose sizes add up to at most `room`."""
    start = used = 0
    for position, char in enumerate(value):
        used += size(char)
        if used > room:
            yield value[start:position]
            start, used = position, size(char)
    if start < len(value):
        yield value[start:]
