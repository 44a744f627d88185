"""Text of workbooks (xlsx), read as a stream, so that a cell far out costs no more than others."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct, field

from postroom_mail.files.archive import Archive, End, Start
from postroom_mail.files.office import relation_targets

MAX_STRING_CHARS = 5_000_000
MAX_STRINGS = 1_000_000
MAX_EMPTY_CELLS = 50
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 (a cell has no time zone)
# Number formats every workbook knows without naming them (ECMA-376 part 1, 18.8.30).
DATE_FORMATS = frozenset({*range(14, 23), *range(45, 48)})

_NOT_A_PATTERN = re.compile(r'"[^"]*+"|\[[^\[\]]*+\]|\\.')
_COLUMN = re.compile(r"([A-Z]{1,3})\d")


def is_workbook(archive: Archive) -> bool:
    return "xl/workbook.xml" in archive


def workbook_text(archive: Archive) -> Iterator[str]:
    strings = _shared_strings(archive)
    dates = _date_styles(archive)
    for name, part in _visible_sheets(archive):
        yield f"{name}\n"
        yield from _sheet_rows(archive, part, strings, dates)
        yield "\n"


def _visible_sheets(archive: Archive) -> Iterator[tuple[str, str]]:
    targets = relation_targets(archive, "xl/_rels/workbook.xml.rels", "xl")
    for sheet in archive.elements("xl/workbook.xml", "sheet"):
        target = targets.get(sheet.get("id", ""), "")
        if target and sheet.get("state", "visible") == "visible":
            yield sheet.get("name", ""), target


def _shared_strings(archive: Archive) -> list[str]:
    strings: list[str] = []
    parts: list[str] = []
    chars, reading = 0, False
    for event in archive.events("xl/sharedStrings.xml"):
        if isinstance(event, str):
            if reading:
                parts.append(event)
                chars += len(event)
        elif event.name == "t":
            reading = isinstance(event, Start)
        elif event.name == "si" and isinstance(event, End):
            strings.append("".join(parts))
            parts.clear()
        if chars > MAX_STRING_CHARS or len(strings) > MAX_STRINGS:
            break
    return strings


def _date_styles(archive: Archive) -> frozenset[int]:
    """Return the indexes of cell styles that show a number as a date."""
    custom: set[int] = set()
    dates: set[int] = set()
    place, in_cells = 0, False
    for event in archive.events("xl/styles.xml"):
        if isinstance(event, str):
            continue
        if event.name == "cellXfs":
            in_cells = isinstance(event, Start)
        elif isinstance(event, Start) and event.name == "numFmt" and _is_date_format(event.attributes):
            custom.add(_number(event.attributes.get("numFmtId")))
        elif isinstance(event, Start) and event.name == "xf" and in_cells:
            if _number(event.attributes.get("numFmtId")) in DATE_FORMATS | custom:
                dates.add(place)
            place += 1
    return frozenset(dates)


def _is_date_format(attributes: dict[str, str]) -> bool:
    return is_date_pattern(attributes.get("formatCode", ""))


def is_date_pattern(written: str) -> bool:
    pattern = _NOT_A_PATTERN.sub("", written[:255]).lower()
    return any(letter in pattern for letter in "ydh") and "general" not in pattern


def _number(written: str | None) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 10 else -1


class _Cell(Struct):
    """A cell as written; column -1 means: the one after the last."""

    kind: str
    style: int
    column: int
    parts: list[str] = field(default_factory=list)


def _sheet_rows(archive: Archive, part: str, strings: list[str], dates: frozenset[int]) -> Iterator[str]:
    column = written = 0
    is_blank = True
    for cell in _cells(archive, part):
        if cell is None:
            if not is_blank:
                yield "\n"
            column, written, is_blank = 0, 0, True
            continue
        column = cell.column if cell.column >= 0 else column
        if text := _cell_text(cell, strings, dates):
            yield "\t" * min(column - written, MAX_EMPTY_CELLS) + text
            written, is_blank = column, False
        column += 1


def _cells(archive: Archive, part: str) -> Iterator[_Cell | None]:
    """Yield the cells of a sheet, and None at the end of each row."""
    cell = _Cell("n", -1, -1)
    reading = False
    for event in archive.events(part):
        if isinstance(event, str):
            if reading:
                cell.parts.append(event)
        elif event.name in ("v", "t"):
            reading = isinstance(event, Start)
        elif event.name == "c" and isinstance(event, Start):
            cell = _started_cell(event.attributes)
        elif event.name == "c":
            yield cell
        elif event.name == "row" and isinstance(event, End):
            yield None


def _started_cell(attributes: dict[str, str]) -> _Cell:
    place = _COLUMN.match(attributes.get("r", ""))
    column = _column_number(place[1]) if place else -1
    return _Cell(attributes.get("t", "n"), _number(attributes.get("s")), column)


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _cell_text(cell: _Cell, strings: list[str], dates: frozenset[int]) -> str:
    written = "".join(cell.parts)
    if cell.kind == "s":
        place = _number(written)
        return in_one_line(strings[place]) if 0 <= place < len(strings) else ""
    if cell.kind == "b":
        return "TRUE" if written == "1" else "FALSE"
    if cell.kind == "n" and cell.style in dates:
        return date_text(written)
    return in_one_line(written)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def date_text(written: str) -> str:
    try:
        moment = FIRST_DAY + timedelta(days=float(written))
    except (ValueError, OverflowError):
        return written
    moment += timedelta(microseconds=500_000)
    return moment.strftime("%Y-%m-%d" if float(written).is_integer() else "%Y-%m-%d %H:%M:%S")
