"""How the operator's commands show a record or a list: as the client's commands do."""

import re
from typing import Any

from postroom_client.cli import output

BETWEEN_WORDS = re.compile("(?=[A-Z])")  # of a name of the interface


def is_for_programs(as_json: bool | None) -> bool:
    """Return whether to print JSON: if asked for, or if the output is not a terminal."""
    return not output.is_terminal() if as_json is None else as_json


def done(record: dict[str, Any], sentence: str, as_json: bool | None) -> None:
    """Says what was done. Scripts read the sentence, so it is JSON only where that is asked for."""
    if as_json:
        output.print_json(output.encode(record))
    else:
        print(sentence)


def print_record(record: dict[str, str], as_json: bool | None, note: str) -> None:
    if is_for_programs(as_json):
        output.print_json(output.encode(record))
        return
    output.print_human(output.record(record.items()))
    output.note(note)


def print_table(rows: list[dict[str, Any]], as_json: bool | None, empty: str) -> None:
    """Print a table. As JSON it has the shape of every list of the API."""
    if is_for_programs(as_json):
        output.print_json(output.encode({"data": rows, "total": len(rows)}))
    elif not rows:
        output.note(empty)
    else:
        titles = [BETWEEN_WORDS.sub(" ", name).upper() for name in rows[0]]
        output.print_human(output.table(titles, [tuple(map(str, row.values())) for row in rows]))
