"""The reading order of the words of a PDF page, if it differs from the order in the file.

Columns of prose that are stored line by line across the page come one after another, and vertical lines of
Japanese and Chinese from right to left. All else stays as it is: cells of a table belong together by row.
"""

import ctypes
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

MAX_GUTTERS = 20
# In sizes of the letters: what separates two columns, and how wide a gap is looked at as one.
SPLIT_GAP, GUTTER_WIDTH = 1.2, 0.8
# Prose, in contrast to cells: so many lines, so long (a Chinese character counts twice), most of them full.
PROSE_LINES, PROSE_LENGTH, FULL_LINE = 3, 20, 0.7
UPRIGHT = 0.1  # radians

_IDEOGRAPHIC = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]")


class Glyph(Struct, frozen=True):
    place: int
    text: str
    left: float
    bottom: float
    right: float
    top: float


class Run(Struct, frozen=True):
    """Letters without a gap between them, and the blanks after them."""

    text: str
    blanks: str
    left: float
    bottom: float
    right: float
    top: float
    size: float
    is_vertical: bool = False

    def turned(self) -> "Run":
        """Return the run as if the page were turned.

        Vertical lines go from left to right, the first on top.
        """
        return replace(self, left=-self.top, right=-self.bottom, bottom=self.left, top=self.right)

    @property
    def length(self) -> int:
        return len(self.text) + len(_IDEOGRAPHIC.findall(self.text))


Row = list[Run]
Gap = tuple[float, float]


def reordered(pdfium: Any, words: Any, count: int) -> str | None:
    """Return the first characters of a page in reading order. None: as in the file."""
    runs = list(_runs(_letters(pdfium, words, count), pdfium, words))
    vertical = [run for run in runs if run.is_vertical]
    blocks = [(vertical, _vertical_text(vertical))] if len(vertical) > 1 else []
    level = [run for run in runs if not run.is_vertical and run.top - run.bottom < 2 * run.size]
    blocks += [(block, _column_text(columns)) for block, columns in _column_blocks(level)]
    return _joined(runs, blocks) if blocks else None


def _joined(runs: Sequence[Run], blocks: Sequence[tuple[Sequence[Run], str]]) -> str:
    """Join the runs, with each block as a whole at the position of its first run."""
    block_of = {id(run): number for number, (block, _) in enumerate(blocks) for run in block}
    joined: set[int] = set()
    parts: list[str] = []
    for run in runs:
        number = block_of.get(id(run))
        if number is None:
            parts.append(run.text + run.blanks)
        elif number not in joined:
            joined.add(number)
            parts.append(f"\n{blocks[number][1]}\n")
    return "".join(parts)


def _letters(pdfium: Any, words: Any, count: int) -> Iterator[Glyph]:
    box = pdfium.FS_RECTF()
    for place in range(count):
        character = chr(pdfium.FPDFText_GetUnicode(words, place))
        pdfium.FPDFText_GetLooseCharBox(words, place, ctypes.byref(box))
        yield Glyph(place, character, box.left, box.bottom, box.right, box.top)


def _runs(letters: Iterator[Glyph], pdfium: Any, words: Any) -> Iterator[Run]:
    written: list[Glyph] = []
    blanks = ""
    for letter in letters:
        if letter.text.isspace():
            blanks += letter.text
        elif written and not _follows(written, letter, blanks):
            yield _run(written, blanks, pdfium, words)
            written, blanks = [letter], ""
        else:
            written += [replace(letter, text=blanks + letter.text) if written else letter]
            blanks = ""
    if written:
        yield _run(written, blanks, pdfium, words)


def _follows(written: Sequence[Glyph], letter: Glyph, blanks: str) -> bool:
    if "\n" in blanks or "\r" in blanks:
        return False
    last = written[-1]
    size = max(last.top - last.bottom, letter.top - letter.bottom)
    return max(letter.left - last.right, last.bottom - letter.top) < SPLIT_GAP * size


def _run(letters: Sequence[Glyph], blanks: str, pdfium: Any, words: Any) -> Run:
    heights = sorted(letter.top - letter.bottom for letter in letters)
    text = "".join(letter.text for letter in letters)
    return Run(
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
        blanks,
        min(letter.left for letter in letters),
        min(letter.bottom for letter in letters),
        max(letter.right for letter in letters),
        max(letter.top for letter in letters),
        max(heights[len(heights) // 2], 1.0),
        _is_vertical(letters, text) and abs(_angle(pdfium, words, letters[0])) < UPRIGHT,
    )


def _angle(pdfium: Any, words: Any, letter: Glyph) -> float:
    angle: float = pdfium.FPDFText_GetCharAngle(words, letter.place)
    return angle


def _is_vertical(letters: Sequence[Glyph], text: str) -> bool:
    """Return whether most characters are ideographs and kana, and most are below the one before."""
    if len(letters) < 2 or 2 * len(_IDEOGRAPHIC.findall(text)) < len(text):
        return False
    pairs = list(pairwise(letters))
    below = sum(after.left < before.right and after.top < before.top - 0.5 for before, after in pairs)
    beside = sum(after.left >= before.left + 0.5 * (before.right - before.left) for before, after in pairs)
    return below > len(pairs) / 2 > beside


def _vertical_text(runs: Sequence[Run]) -> str:
    turned = [run.turned() for run in runs]
    blocks = list(_column_blocks(turned))
    lines = _joined_rows(_rows(turned))
    return "\n".join(_column_text(columns) for _, columns in blocks) if _covers(blocks, turned) else lines


def _covers(blocks: Sequence[tuple[Row, list[Row]]], runs: Sequence[Run]) -> bool:
    return sum(len(block) for block, _ in blocks) == len(runs)


def _column_text(columns: Sequence[Row]) -> str:
    return "\n".join(_joined_rows(_rows(column)) for column in columns)


def _joined_rows(rows: Sequence[Row]) -> str:
    return "\n".join(" ".join(run.text for run in row) for row in rows)


def _rows(runs: Sequence[Run]) -> list[Row]:
    """Runs side by side, from the top down, each row from left to right."""
    rows: list[Row] = []
    for run in sorted(runs, key=lambda run: -run.top):
        if rows and run.top + run.bottom > 2 * rows[-1][0].bottom:
            rows[-1].append(run)
        else:
            rows.append([run])
    return [sorted(row, key=lambda run: run.left) for row in rows]


def _column_blocks(runs: Sequence[Run]) -> Iterator[tuple[Row, list[Row]]]:
    """Yield the runs of each part of the page with columns of prose, and these columns."""
    for rows, gutters in _stretches(_rows(runs)):
        block = [run for row in rows for run in row]
        columns = _columns(block, gutters)
        if len(columns) > 1:
            yield block, columns


def _stretches(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Gap]]]:
    """Yield consecutive rows that share at least one gap, and the gaps they all share."""
    stretch: list[Row] = []
    gutters: list[Gap] = []
    for row in rows:
        left = _shared(gutters, _free(row), row[0].size)
        if left:
            stretch.append(row)
            gutters = left
            continue
        if stretch:
            yield stretch, gutters
        gutters = _free(row)[1:-1][:MAX_GUTTERS]
        stretch = [row] if gutters else []
    if stretch:
        yield stretch, gutters


def _free(row: Row) -> list[Gap]:
    """Return the empty ranges of a row: before, between and after its runs."""
    gaps: list[Gap] = []
    reached = float("-inf")
    for run in row:
        if run.left > reached:
            gaps.append((reached, run.left))
        reached = max(reached, run.right)
    return [*gaps, (reached, float("inf"))]


def _shared(gutters: Sequence[Gap], free: Sequence[Gap], size: float) -> list[Gap]:
    both: list[Gap] = []
    at = 0
    for left, right in gutters:
        while at < len(free) and free[at][1] <= left:
            at += 1
        if at < len(free):
            gap = max(left, free[at][0]), min(right, free[at][1])
            both += [gap] if gap[1] - gap[0] >= GUTTER_WIDTH * size else []
    return both


def _columns(runs: Sequence[Run], gutters: Sequence[Gap]) -> list[Row]:
    columns: list[Row] = []
    rest = list(runs)
    for gutter, _ in gutters:
        before = [run for run in rest if run.left <= gutter]
        behind = [run for run in rest if run.left > gutter]
        if _is_prose(before) and _is_prose(behind):
            columns, rest = [*columns, before], behind
    return [*columns, rest]


def _is_prose(runs: Row) -> bool:
    rows = _rows(runs)
    if len(rows) < PROSE_LINES or sum(run.length for run in runs) < PROSE_LENGTH * len(rows):
        return False
    widths = [row[-1].right - row[0].left for row in rows]
    full = sum(width >= FULL_LINE * max(widths) for width in widths)
    return 2 * full >= len(rows)
