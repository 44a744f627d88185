"""Text of Word documents before docx (MS-DOC): the pieces of the piece table, without hidden words."""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from postroom_mail.files.old_office.compound import CompoundFile
from postroom_mail.files.outcome import Encrypted, Unsupported

# Pieces may name the same bytes again and again.
MAX_SEEN_CHARS = 8_000_000
PAGE_BYTES = 512
WORD_97 = 0x00C1
ENCRYPTED, SECOND_TABLE = 0x0100, 0x0200
# Where the file information block keeps what we need (MS-DOC 2.5).
RUN_PLACES, PIECE_TABLE = 0x00FA, 0x01A2
LENGTHS = ("main", "footnotes", "headers", "macros", "comments", "endnotes", "boxes")
READ = frozenset({"main", "footnotes", "endnotes", "boxes"})
# Sprms that hide a run: deleted while changes are tracked, and hidden.
HIDING = frozenset({0x0800, 0x083C})
OPERAND_BYTES = (1, 1, 2, 4, 2, 2, 0, 3)
FIELD_START, FIELD_RESULT, FIELD_END = "\x13", "\x14", "\x15"

_SHOWN = str.maketrans({"\x0b": "\n", "\x0c": "\n", "\r": "\n", "\x1e": "-", "\x1f": None, "\x07": "\t"})


class TextPiece(NamedTuple):
    """A range of characters at a position in the stream, of one or two bytes each."""

    first: int
    last: int
    place: int
    width: int


def is_word(names: dict[str, int]) -> bool:
    return "worddocument" in names


def word97_text(file: CompoundFile) -> Iterator[str]:
    stream = file.stream("WordDocument")
    magic, version, flags = struct.unpack_from("<HH6xH", stream)
    if magic not in (0xA5EC, 0xA5DC):
        raise Unsupported
    if flags & ENCRYPTED:
        raise Encrypted
    if version < WORD_97:
        return _shown(iter([_word95_text(stream)]))
    table = file.stream("1Table" if flags & SECOND_TABLE else "0Table")
    return _shown(_pieces_text(stream, table))


def _word95_text(stream: bytes) -> str:
    (start,) = struct.unpack_from("<I", stream, 0x18)
    (length,) = struct.unpack_from("<I", stream, 0x34)
    return stream[start : start + length].decode("cp1252", "replace")


def _pieces_text(stream: bytes, table: bytes) -> Iterator[str]:
    hidden = HiddenRuns.of(stream, table)
    left = MAX_SEEN_CHARS
    for first, last in _read_ranges(stream):
        for piece in _pieces(_block(stream, table, PIECE_TABLE)):
            start, end = max(first, piece.first), min(last, piece.last)
            if start >= end or left <= 0:
                continue
            place = piece.place + (start - piece.first) * piece.width
            left -= end - start
            yield from hidden.without(stream, place, place + (end - start) * piece.width, piece.width)
        yield "\n"


def _read_ranges(stream: bytes) -> Iterator[tuple[int, int]]:
    place = 0
    for name, length in zip(LENGTHS, struct.unpack_from(f"<{len(LENGTHS)}I", stream, 0x4C), strict=True):
        if name in READ and length:
            yield place, place + length
        place += length


def _block(stream: bytes, table: bytes, place: int) -> bytes:
    start, length = struct.unpack_from("<II", stream, place)
    return table[start : start + length]


def _pieces(block: bytes) -> Iterator[TextPiece]:
    place = 0
    while block[place : place + 1] == b"\x01":
        place += 3 + struct.unpack_from("<H", block, place + 1)[0]
    if block[place : place + 1] != b"\x02":
        return
    (size,) = struct.unpack_from("<I", block, place + 1)
    body = block[place + 5 : place + 5 + size]
    count = (len(body) - 4) // 12
    if count < 1:
        return
    bounds = struct.unpack_from(f"<{count + 1}I", body)
    for number in range(count):
        (where,) = struct.unpack_from("<I", body, (count + 1) * 4 + number * 8 + 2)
        is_narrow = bool(where & 0x40000000)
        where &= 0x3FFFFFFF
        yield TextPiece(bounds[number], bounds[number + 1], where // 2 if is_narrow else where, 2 - is_narrow)


class HiddenRuns(Struct, frozen=True):
    """The hidden byte ranges of the stream, in order and disjoint."""

    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, stream: bytes, table: bytes) -> "HiddenRuns":
        block = _block(stream, table, RUN_PLACES)
        count = max(0, (len(block) - 4) // 8)
        pages = set(struct.unpack_from(f"<{count}I", block, (count + 1) * 4)) if count else set()
        runs: list[list[int]] = []
        for start, end in sorted(run for page in pages for run in _hidden_runs(stream, page & 0x3FFFFF)):
            if runs and start <= runs[-1][1]:
                runs[-1][1] = max(end, runs[-1][1])
            else:
                runs.append([start, end])
        return cls([run[0] for run in runs], [run[1] for run in runs])

    def without(self, stream: bytes, place: int, end: int, width: int) -> Iterator[str]:
        while place < end:
            number = bisect_right(self.starts, place) - 1
            if number >= 0 and place < self.ends[number]:
                place += -(-(min(self.ends[number], end) - place) // width) * width
                continue
            stop = self.starts[number + 1] if number + 1 < len(self.starts) else end
            stop = min(end, max(stop, place + width))
            yield stream[place:stop].decode("cp1252" if width == 1 else "utf-16-le", "replace")
            place = stop


def _hidden_runs(stream: bytes, page: int) -> Iterator[tuple[int, int]]:
    """Yield the hidden runs of one page of run properties (ChpxFkp)."""
    raw = stream[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
    count = raw[-1] if len(raw) == PAGE_BYTES else 0
    if not 0 < count <= 101:
        return
    bounds = struct.unpack_from(f"<{count + 1}I", raw)
    for number in range(count):
        place = raw[(count + 1) * 4 + number] * 2
        if place and _hides(raw[place + 1 : place + 1 + raw[place]]) and bounds[number] < bounds[number + 1]:
            yield bounds[number], bounds[number + 1]


def _hides(properties: bytes) -> bool:
    place = 0
    while place + 3 <= len(properties):
        (code,) = struct.unpack_from("<H", properties, place)
        if code in HIDING and properties[place + 2] == 1:
            return True
        size = OPERAND_BYTES[code >> 13] or 1 + properties[place + 2]
        place += 2 + size
    return False


def _shown(pieces: Iterator[str]) -> Iterator[str]:
    """Yield visible text: only the result of a field, and the cells and rows of a table."""
    codes = 0
    fields: list[bool] = []
    for piece in pieces:
        for part in _field_parts(piece):
            if part == FIELD_START:
                if len(fields) < 1_000:
                    fields.append(True)
                    codes += 1
            elif part == FIELD_RESULT and fields:
                codes -= fields[-1]
                fields[-1] = False
            elif part == FIELD_END and fields:
                codes -= fields.pop()
            elif not codes:
                yield part.replace("\x07\x07", "\n").translate(_SHOWN)


def _field_parts(piece: str) -> Iterator[str]:
    start = 0
    for place, letter in enumerate(piece):
        if letter in "\x13\x14\x15":
            if start < place:
                yield piece[start:place]
            yield letter
            start = place + 1
    if start < len(piece):
        yield piece[start:]
