"""Text of workbooks before xlsx (MS-XLS, and Excel 95), record by record: empty cells cost nothing."""

import struct
from collections.abc import Iterator

from msgspec import Struct, field

from postroom_mail.files.old_office.compound import CompoundFile
from postroom_mail.files.outcome import Encrypted
from postroom_mail.files.workbook import (
    DATE_FORMATS,
    MAX_EMPTY_CELLS,
    MAX_STRING_CHARS,
    MAX_STRINGS,
    date_text,
    in_one_line,
    is_date_pattern,
)

MAX_SHEETS = 1_000
BEGIN, END, CONTINUE, PASSWORD = 0x0809, 0x000A, 0x003C, 0x002F
SHEET, STRINGS, FORMAT, STYLE, CODEPAGE = 0x0085, 0x00FC, 0x041E, 0x00E0, 0x0042
LABEL, SHARED_LABEL, RICH_LABEL, NUMBER, SHORT_NUMBER, SHORT_NUMBERS = (
    0x0204,
    0x00FD,
    0x00D6,
    0x0203,
    0x027E,
    0x00BD,
)
TRUTH, FORMULA, FORMULA_TEXT = 0x0205, 0x0006, 0x0207
CELLS = frozenset((LABEL, SHARED_LABEL, RICH_LABEL, NUMBER, SHORT_NUMBER, SHORT_NUMBERS, TRUTH, FORMULA))
EXCEL_97 = 0x0600
ERRORS = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
}

BookRecord = tuple[int, bytes]
# Row, column, and what is shown there.
Cell = tuple[int, int, str]


def is_old_workbook(names: dict[str, int]) -> bool:
    return "workbook" in names or "book" in names


def workbook97_text(file: CompoundFile) -> Iterator[str]:
    stream = file.stream("Workbook") or file.stream("Book")
    book = _Book.read(stream)
    # Sheets may name the same bytes again and again.
    left = 2 * len(stream)
    for name, place in book.sheets:
        yield f"{name}\n"
        for piece, size in _sheet_text(book, stream, place):
            left -= size
            if left < 0:
                return
            yield piece
        yield "\n"


class _Book(Struct):
    """Common to all sheets: their names and positions, strings, and which styles show a date."""

    is_97: bool = True
    codec: str = "cp1252"
    sheets: list[tuple[str, int]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    date_formats: set[int] = field(default_factory=lambda: set(DATE_FORMATS))
    styles: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, stream: bytes) -> "_Book":
        book = cls()
        strings: list[bytes] = []
        last = 0
        for kind, body in _records(stream, 0):
            if kind == END:
                break
            if kind == PASSWORD:
                raise Encrypted
            if kind == STRINGS or (kind == CONTINUE and last == STRINGS):
                strings.append(body)
            elif kind != CONTINUE:
                book._take(kind, body)
            last = last if kind == CONTINUE else kind
        book.strings = list(_shared_strings(strings))
        return book

    def _take(self, kind: int, body: bytes) -> None:
        if kind == BEGIN:
            self.is_97 = struct.unpack_from("<H", body)[0] >= EXCEL_97
        elif kind == CODEPAGE and not self.is_97:
            page = struct.unpack_from("<H", body)[0]
            self.codec = {32768: "mac_roman", 10000: "mac_roman"}.get(page, f"cp{page}")
        elif kind == SHEET and len(self.sheets) < MAX_SHEETS:
            place, is_hidden, sort = struct.unpack_from("<IBB", body)
            if not is_hidden & 3 and sort == 0:
                self.sheets.append((self.text(body[6:], 1), place))
        elif kind == FORMAT and is_date_pattern(self.text(body[2:], 2 if self.is_97 else 1)):
            self.date_formats.add(struct.unpack_from("<H", body)[0])
        elif kind == STYLE:
            self.styles.append(struct.unpack_from("<H", body, 2)[0])

    def text(self, raw: bytes, length_bytes: int) -> str:
        """Return a string with its length before it. Since Excel 97 a byte gives its character width."""
        length = int.from_bytes(raw[:length_bytes], "little")
        rest = raw[length_bytes:]
        if not self.is_97:
            return _decoded(rest[:length], self.codec)
        is_wide = bool(rest[:1] and rest[0] & 1)
        return _decoded(rest[1 : 1 + length * (1 + is_wide)], "utf-16-le" if is_wide else "latin-1")

    def number(self, style: int, value: float) -> str:
        shows_date = style < len(self.styles) and self.styles[style] in self.date_formats
        written = str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        return date_text(written) if shows_date else written


def _decoded(raw: bytes, codec: str) -> str:
    try:
        return raw.decode(codec, "replace")
    except LookupError:
        return raw.decode("cp1252", "replace")


def _records(stream: bytes, place: int) -> Iterator[BookRecord]:
    while place + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, place)
        yield kind, stream[place + 4 : place + 4 + size]
        place += 4 + size


def _sheet_text(book: _Book, stream: bytes, place: int) -> Iterator[tuple[str, int]]:
    """Yield the cells in file order, and how many bytes were read for each."""
    row = written = -1
    for (at_row, column, text), size in _cells(book, stream, place):
        if not text:
            yield "", size
            continue
        gap = "" if row < 0 else "\n"
        if at_row != row:
            row, written = at_row, 0
        else:
            gap = ""
        yield gap + "\t" * min(max(column - written, 0), MAX_EMPTY_CELLS) + text, size
        written = column
    yield "\n", 0


def _cells(book: _Book, stream: bytes, place: int) -> Iterator[tuple[Cell, int]]:
    formula = (0, 0)
    depth = 0
    for kind, body in _records(stream, place):
        depth += (kind == BEGIN) - (kind == END)
        if depth <= 0:
            return
        if kind == FORMULA and len(body) >= 14 and body[12:14] == b"\xff\xff" and body[6] == 0:
            formula = struct.unpack_from("<HH", body)
        if kind == FORMULA_TEXT:
            yield (*formula, in_one_line(book.text(body, 2))), 4 + len(body)
        else:
            cells = list(_record_cells(book, kind, body)) or [(0, 0, "")]
            for number, cell in enumerate(cells):
                yield cell, 0 if number else 4 + len(body)


def _record_cells(book: _Book, kind: int, body: bytes) -> Iterator[Cell]:
    if len(body) < 8 or kind not in CELLS:
        return
    row, column, style = struct.unpack_from("<HHH", body)
    if kind == SHORT_NUMBERS:
        for number in range((len(body) - 6) // 6):
            style, short = struct.unpack_from("<HI", body, 4 + number * 6)
            yield row, column + number, book.number(style, _short_number(short))
    else:
        yield row, column, in_one_line(_cell_text(book, kind, style, body[6:]))


def _cell_text(book: _Book, kind: int, style: int, body: bytes) -> str:
    if kind in (LABEL, RICH_LABEL):
        return book.text(body, 2)
    if kind == SHARED_LABEL and len(body) >= 4:
        (place,) = struct.unpack_from("<I", body)
        return book.strings[place] if place < len(book.strings) else ""
    if kind == SHORT_NUMBER and len(body) >= 4:
        return book.number(style, _short_number(struct.unpack_from("<I", body)[0]))
    if kind == TRUTH:
        return _truth(body[0], is_error=bool(body[1]))
    if kind in (NUMBER, FORMULA) and len(body) >= 8:
        return _result(book, style, body[:8]) if kind == FORMULA else book.number(style, _double(body))
    return ""


def _result(book: _Book, style: int, body: bytes) -> str:
    if body[6:8] != b"\xff\xff":
        return book.number(style, _double(body))
    return _truth(body[2], is_error=body[0] == 2) if body[0] in (1, 2) else ""


def _truth(value: int, *, is_error: bool) -> str:
    if is_error:
        return ERRORS.get(value, "")
    return "TRUE" if value else "FALSE"


def _double(body: bytes) -> float:
    return float(struct.unpack_from("<d", body)[0])


def _short_number(short: int) -> float:
    """Return a number of 30 bits: an integer or the upper part of a double, perhaps to be divided by 100."""
    if short & 2:
        value = float((short - (1 << 32) if short & 0x80000000 else short) >> 2)
    else:
        value = _double(struct.pack("<Q", (short & 0xFFFFFFFC) << 32))
    return value / 100 if short & 1 else value


def _shared_strings(blocks: list[bytes]) -> Iterator[str]:
    """Yield the table of strings, which may be split anywhere into records (MS-XLS 2.5.293)."""
    if not blocks or len(blocks[0]) < 8:
        return
    reader = _Blocks(blocks, at=8)
    chars = 0
    for _ in range(min(struct.unpack_from("<I", blocks[0], 4)[0], MAX_STRINGS)):
        if reader.is_ended or chars > MAX_STRING_CHARS:
            return
        text = reader.string()
        chars += len(text)
        yield text


class _Blocks(Struct):
    blocks: list[bytes]
    number: int = 0
    at: int = 0

    @property
    def is_ended(self) -> bool:
        return self.number >= len(self.blocks)

    def take(self, size: int) -> bytes:
        taken = bytearray()
        while size > 0 and not self.is_ended:
            piece = self.blocks[self.number][self.at : self.at + size]
            taken += piece
            size -= len(piece)
            self._advance(len(piece))
        return bytes(taken)

    def _advance(self, size: int) -> None:
        self.at += size
        while not self.is_ended and self.at >= len(self.blocks[self.number]):
            self.number, self.at = self.number + 1, 0

    def string(self) -> str:
        length = int.from_bytes(self.take(2), "little")
        flags = (self.take(1) or b"\0")[0]
        runs = int.from_bytes(self.take(2), "little") if flags & 8 else 0
        extra = int.from_bytes(self.take(4), "little") if flags & 4 else 0
        text = self._letters(length, bool(flags & 1))
        self.take(runs * 4 + extra)
        return text

    def _letters(self, length: int, is_wide: bool) -> str:
        """Return the characters. A continuation in the next record gives their width again."""
        parts: list[str] = []
        while length > 0 and not self.is_ended:
            width = 1 + is_wide
            left = len(self.blocks[self.number]) - self.at
            count = min(length, max(left // width, 1))
            is_cut = count < length or left < width
            raw = self.blocks[self.number][self.at : self.at + count * width]
            parts.append(raw.decode("utf-16-le" if is_wide else "latin-1", "replace"))
            length -= count
            self._advance(count * width)
            if is_cut and not self.is_ended and self.at == 0:
                is_wide = bool(self.take(1)[0] & 1)
        return "".join(parts)
