"""Tables as CSV in which a spreadsheet runs no formula of a stranger."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.web.dashboard.display.rendering import HEADERS

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
CELL_CHARACTERS = 10_000


def to_file(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    headers = {**HEADERS, "Content-Disposition": f"attachment; filename={name}"}
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: object) -> str:
    """Return the text of a cell.

    A spreadsheet evaluates what begins like a formula, unless a quote is before it.
    """
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not isinstance(value, int | float) else text


def first_cells(content: bytes, most: int) -> Iterator[str]:
    """Yield the first cell of each line, with or without our own quote."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadRequest("The file is not a UTF-8 text file.", field="attachments") from None
    if len(lines) > most:
        raise BadRequest(f"The file has more than {most:,} lines. Split it.", field="attachments")
    for line in lines:
        cell = line.partition(",")[0].partition(";")[0].strip().strip('"').lstrip("'").strip()
        if cell:
            yield cell[:CELL_CHARACTERS]
