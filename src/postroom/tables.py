"""How the operator's commands print a record and a table, for people or as JSON."""

import json
import sys
from typing import Any


def print_record(record: dict[str, str], as_json: bool, note: str) -> None:
    if as_json:
        print(json.dumps(record))
        return
    width = max(map(len, record))
    for name, value in record.items():
        print(f"{name:<{width}}  {value}")
    print(note, file=sys.stderr)


def print_table(rows: list[dict[str, Any]], as_json: bool, empty: str) -> None:
    if as_json:
        print(json.dumps(rows))
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in rows[0]}
        for row in [{name: name for name in rows[0]}, *rows]:
            print("  ".join(f"{row[name]!s:<{width}}" for name, width in widths.items()).rstrip())
