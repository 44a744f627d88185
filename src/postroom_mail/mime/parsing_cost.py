"""Estimates the work of parsing a content before it is done: cost, not size, decides.

What costs little may run in the event loop. JSON with too many values is not decoded anywhere: a decoder runs
as one call that nothing interrupts, and a value takes up to fifty times its bytes of memory.
"""

import string

MOST_BYTES = 32 * 1024
# Parsers stop at what is no letter, digit or space, and spend about ten microseconds there at most.
MOST_MARKS = 2_000
FOREIGN_BYTES_OF_A_MARK = 4
MAX_JSON_VALUES = 20_000
MAX_JSON_DEPTH = 32
CHUNK_BYTES = 64 * 1024  # each call on a chunk takes well under a millisecond: other threads get their turn

_PLAIN = (string.ascii_letters + string.digits + " \r").encode()  # a line break is one mark
_ASCII = bytes(range(128))
_OPENING = b"[{"
_ALL_BUT_JSON_MARKS = bytes(set(range(256)) - set(b",[]{}"))


def is_little(*contents: bytes, most_bytes: int = MOST_BYTES) -> bool:
    """Return whether all of it can be read at once, without others noticing."""
    if sum(map(len, contents)) > most_bytes:
        return False
    return sum(map(_marks, contents)) <= MOST_MARKS


def _marks(content: bytes) -> int:
    """Count the marks. The content of base64 is unknown until decoded: the worst case counts."""
    if b"64" in content and b"base64" in content.lower():
        return len(content)
    marks = content.translate(None, _PLAIN)
    foreign = len(marks.translate(None, _ASCII))
    return len(marks) - foreign + foreign // FOREIGN_BYTES_OF_A_MARK


def find_json_excess(raw: bytes) -> str | None:
    """Return what is too much about `raw`, or None. Whether it is JSON is left to the decoder.

    An empty array or object counts as two values. `raw` must be decoded as UTF-8: in UTF-16 other bytes are
    quotes. A short text cannot have too many values, and few brackets cannot nest too deeply.
    """
    if len(raw) < MAX_JSON_VALUES and raw.count(b"[") + raw.count(b"{") <= MAX_JSON_DEPTH:
        return None
    return _JsonScan().find_excess(raw)


class _JsonScan:
    """Counts what is outside of strings, in one pass over chunks."""

    def __init__(self) -> None:
        self._values = 1
        self._depth = 0
        self._strings = 0
        self._is_in_string = 0

    def find_excess(self, raw: bytes) -> str | None:
        held = b""
        for start in range(0, len(raw), CHUNK_BYTES):
            chunk = held + raw[start : start + CHUNK_BYTES]
            held = b""
            if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:  # it escapes the first byte of the next chunk
                chunk, held = chunk[:-1], b"\\"
            marks = self._marks_outside_strings(chunk)
            self._values += len(marks) - marks.count(b"]") - marks.count(b"}")
            # A name and its value are two strings; more have no separators between them and are no JSON.
            if self._values > MAX_JSON_VALUES or self._strings > 2 * MAX_JSON_VALUES:
                return f"has more than {MAX_JSON_VALUES} values"
            self._follow_nesting(marks.translate(None, b","))
            if self._depth > MAX_JSON_DEPTH:
                return f"is nested more than {MAX_JSON_DEPTH} levels deep"
            if self._depth < 0:
                return None  # no JSON: the decoder stops there too
        return None

    def _marks_outside_strings(self, chunk: bytes) -> bytes:
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = chunk.split(b'"')
        outside = b"".join(parts[self._is_in_string :: 2])
        self._strings += len(parts) // 2
        self._is_in_string = (self._is_in_string + len(parts) - 1) % 2
        return outside.translate(None, _ALL_BUT_JSON_MARKS)

    def _follow_nesting(self, brackets: bytes) -> None:
        for bracket in brackets:
            self._depth += 1 if bracket in _OPENING else -1
            if not 0 <= self._depth <= MAX_JSON_DEPTH:
                return
