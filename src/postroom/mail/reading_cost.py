"""Estimates the work of parsing a content: cost, not size, decides whether it may run in the event loop."""

import string

MOST_BYTES = 32 * 1024
# Parsers stop at what is no letter, digit or space, and spend about ten microseconds there at most.
MOST_MARKS = 2_000
FOREIGN_BYTES_OF_A_MARK = 4

_PLAIN = (string.ascii_letters + string.digits + " \r").encode()  # a line break is one mark
_ASCII = bytes(range(128))


def is_little(*contents: bytes, most_bytes: int = MOST_BYTES) -> bool:
    """Whether all of it can be read at once, without others noticing."""
    if sum(map(len, contents)) > most_bytes:
        return False
    return sum(map(_marks, contents)) <= MOST_MARKS


def _marks(content: bytes) -> int:
    """The content of base64 is unknown until decoded: the worst case counts."""
    if b"64" in content and b"base64" in content.lower():
        return len(content)
    marks = content.translate(None, _PLAIN)
    foreign = len(marks.translate(None, _ASCII))
    return len(marks) - foreign + foreign // FOREIGN_BYTES_OF_A_MARK
