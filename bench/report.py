"""Results as a table for people and as JSON for programs."""

import json
import os
import platform
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.consumption import BUSY_SHARE
from bench.results import Result
from postroom.processes import interpreter

HEADINGS = ("measurement", "value", "unit", "aim", "met", "peer in the same run", "peer's value", "ratio")
NUMERIC = {"value", "peer's value", "ratio"}


def table(results: Sequence[Result]) -> str:
    rows = [HEADINGS, *(_cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def as_json(results: Sequence[Result], share_of_others: float) -> str:
    about = machine() | {"taken_by_others": round(share_of_others, 2)}
    return json.dumps({"machine": about, "results": [_record(result) for result in results]}, indent=2)


def head(share_of_others: float) -> str:
    about = ", ".join(f"{name} {value}" for name, value in machine().items())
    return "\n".join([about, *warnings(share_of_others)])


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": python(),
        "sqlite": sqlite3.sqlite_version,
    }


def python() -> str:
    """With how it was built: one without optimisation takes 15 to 50 % longer for everything."""
    return f"{platform.python_implementation()} {platform.python_version()}, built {build()}"


def build() -> str:
    words = {interpreter.OPTIMIZED: "with optimisation", interpreter.PLAIN: "WITHOUT OPTIMISATION"}
    return words.get(interpreter.build(), "with the optimisation of the system's packagers")


def warnings(share_of_others: float) -> list[str]:
    if share_of_others < BUSY_SHARE:
        return []
    return [f"The machine was busy: others took {share_of_others:.0%} of it. Rates are of little use."]


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _cells(result: Result) -> tuple[str, ...]:
    peer = result.peer
    return (
        result.name,
        number(result.value),
        result.unit,
        str(result.aim or ""),
        {None: "", True: "yes", False: "NO"}[result.is_met],
        peer.name if peer else "",
        number(peer.value) if peer else "",
        f"{peer.ratio:.2f}" if peer else "",
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if heading in NUMERIC else cell.ljust(width)
        for heading, cell, width in zip(HEADINGS, row, widths, strict=True)
    ]
    return "  ".join(cells).rstrip()


def _record(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "value": result.value,
        "unit": result.unit,
        "aim": str(result.aim) if result.aim else None,
        "met": result.is_met,
        "peer": asdict(result.peer) if result.peer else None,
    }
