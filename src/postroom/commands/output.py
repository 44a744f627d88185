"""How the operator's commands print a record and a table, for people or as JSON."""

import json
import sys
from typing import Any


def is_for_programs(as_json: bool | None) -> bool:
    """JSON if asked for, or if the output is not a terminal."""
    return not sys.stdout.isatty() if as_json is None else as_json


def print_record(record: dict[str, str], as_json: bool | None, note: str) -> None:
    if is_for_programs(as_json):
        print(json.dumps(record))
        return
    width = max(map(len, record))
    for name, value in record.items():
        print(f"{name:<{width}}  {value}")
    print(note, file=sys.stderr)


def print_table(rows: list[dict[str, Any]], as_json: bool | None, empty: str) -> None:
    """As JSON in the shape of every list of the interface."""
    if is_for_programs(as_json):
        print(json.dumps({"data": rows, "total": len(rows)}))
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in rows[0]}
        for row in [{name: name for name in rows[0]}, *rows]:
            print("  ".join(f"{row[name]!s:<{width}}" for name, width in widths.items()).rstrip())
