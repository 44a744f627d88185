"""Print tables for people and JSON for programs. Data goes to stdout, all else to stderr."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from postroom_client.cli.safe_text import json_text, many_lines, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from postroom_client.results import Page, ThreadMessages, ValueOrigin
    from postroom_client.transport.wire import OnProgress

WIDTH_WITHOUT_TERMINAL = 200
_BYTES_WITH_PROGRESS = 500_000  # what is smaller is sent at once: a bar would only flicker
MINUTE, HOUR, DAY = 60, 3600, 86400
LENGTH_OF_A_DAY = len("2026-11-20")
Row = Sequence[str]
Cell = str | Callable[[Any], str]  # the path of a field, or a function that makes a text of an item
Column = str | tuple[str, Cell]  # "created created_at": the title and the path, or the path alone
Columns = tuple[Column, ...]
TIMES = ("WHEN", "LAST", "SINCE", "CREATED", "CHANGED", "LAST SEEN", "LAST USED", "START", "END")
# Read, not copied: they are cut where a table is wider than the terminal.
CUT = ("FROM", "TO", "WITH", "SUBJECT", "SUMMARY", "PREVIEW", "FOUND", "LOCATION")
CUT_CHARACTERS = 16
SPARED = ("PREVIEW", "MESSAGES", "CREATED", "KNOWN", "THREADS")  # left out, in this order, until a table fits
ID = re.compile(r"[a-z]+_[0-9a-f]{32}")
LONG = ("PREVIEW", "MESSAGES")  # left out where ids stand below their rows
SHORT_CHARACTERS = 12  # a column of such cells is never broken
COLOURED_COLUMNS = ("STATUS", "STATE", "VERDICT")
COLOURS = {
    **dict.fromkeys(
        ("failed", "bounced", "complained", "malicious", "rejected", "expired", "disabled"), "red"
    ),
    **dict.fromkeys(("pending", "held", "suspicious", "deferred", "scheduled"), "yellow"),
    **dict.fromkeys(("sent", "delivered", "verified", "approved", "clean"), "green"),
}


def is_terminal() -> bool:
    return sys.stdout.isatty()


def is_for_programs(arguments: Sequence[str]) -> bool:
    """Return whether these arguments ask for JSON: by an option, else because the output is piped."""
    said = [each for each in arguments if each in ("--json", "--no-json")]
    return said[-1] == "--json" if said else not is_terminal()


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def console() -> "Console":
    from rich.console import Console

    width = None if is_terminal() else WIDTH_WITHOUT_TERMINAL
    return Console(width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_json(raw: bytes | str) -> None:
    """Print JSON: one line for programs; indented and escaped on a terminal."""
    import msgspec

    text = raw if isinstance(raw, str) else raw.decode()
    if is_terminal():
        text = json_text(msgspec.json.format(text, indent=2))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def encode(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value)


def print_human(*parts: "RenderableType") -> None:
    screen = console()
    for part in parts:
        screen.print(part)


def print_text(text: str) -> None:
    """Print free text, escaped and never wrapped, so that it can be copied whole."""
    print(many_lines(text), flush=True)


def table(columns: Sequence[str], rows: Iterable[Row], widths: Sequence[int] = ()) -> "Table":
    """Return a table. It escapes every cell, so no caller can forget it."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    lines = [[one_line(cell) for cell in row] for row in rows]
    for at, column in enumerate(columns):
        # An id is copied whole, and a time is read at a glance.
        is_whole = column.endswith("ID") or column in TIMES or _longest(lines, at) <= SHORT_CHARACTERS
        width = widths[at] if widths else None
        made.add_column(column, overflow="fold", no_wrap=is_whole, width=width)
    for line in lines:
        made.add_row(*(_cell_text(name, cell) for name, cell in zip(columns, line, strict=True)))
    return made


def _cell_text(column: str, cell: str) -> "Text":
    from rich.text import Text

    if column in CUT:
        return Text(cell, no_wrap=True, overflow="ellipsis")
    return Text(cell, colour(column, cell))


def _longest(rows: Sequence[Row], at: int) -> int:
    return max((len(row[at]) for row in rows), default=0)


def colour(column: str, cell: str) -> str:
    """Return the colour of a state. Rich omits colours if NO_COLOR is set or there is no terminal."""
    return COLOURS.get(cell, "") if column in COLOURED_COLUMNS else ""


def record(pairs: Iterable[tuple[str, str]], widest: int = 0) -> "Table":
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True, min_width=widest)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(Text(name), Text(one_line(value)))
    return made


def origins(found: "Iterable[ValueOrigin]") -> list[tuple[str, str]]:
    """Return a line for each value that came from somebody else, with the message that brought it."""
    return [("carries", f"{each.value} ({each.kind}) of {each.message_id}") for each in found]


def print_table(columns: Columns, items: Iterable[Any]) -> None:
    """Print a row for each item, without the columns that are empty in all of them.

    Where the terminal is too narrow, less needed columns are left out, then ids stand below their rows.
    """
    titled = [_titled(each) for each in columns]
    rows = [tuple(cell(item, path) for _, path in titled) for item in items]
    titles = [title.upper() for title, _ in titled]
    shown = [at for at in range(len(titled)) if not rows or any(row[at] for row in rows)]
    if _fitting(titles, rows, shown):
        print_human(_chosen(titles, rows, _fitting(titles, rows, shown)))
        return
    ids = [at for at in shown if any(ID.fullmatch(row[at]) for row in rows)]
    rest = [at for at in shown if at not in ids and titles[at] not in LONG]
    rest = _fitting(titles, rows, rest) or rest
    if rest and ids:
        _print_with_ids_below(titles, rows, rest, ids)
    else:
        print_human(_chosen(titles, rows, shown))


def _fitting(titles: Sequence[str], rows: Sequence[Row], shown: Sequence[int]) -> list[int]:
    """Return the columns to show so that a row is a line, or none if there are too many."""
    left = list(shown)
    for spared in (None, *SPARED):
        left = [at for at in left if titles[at] != spared]
        if _width(titles, rows, left) <= console().width:
            return left
    return []


def _width(titles: Sequence[str], rows: Sequence[Row], shown: Sequence[int]) -> int:
    """Return the columns of the terminal that the table needs."""
    widths = [max(len(titles[at]), _longest(rows, at)) for at in shown]
    cut = [
        min(width, CUT_CHARACTERS) if titles[at] in CUT else width
        for at, width in zip(shown, widths, strict=True)
    ]
    return sum(cut) + 2 * (len(shown) - 1)


def _chosen(titles: Sequence[str], rows: Sequence[Row], shown: Sequence[int]) -> "Table":
    return table([titles[at] for at in shown], [[row[at] for at in shown] for row in rows])


def _print_with_ids_below(
    titles: Sequence[str], rows: Sequence[Row], shown: Sequence[int], ids: Sequence[int]
) -> None:
    """Print each row with its ids below it: the first alone, others after their column's name."""
    named = [titles[at] for at in shown]
    widths = _shared_out(named, [[row[at] for at in shown] for row in rows], console().width)
    header = table(named, [], widths)
    print_human(header)
    for row in rows:
        line = table(named, [[row[at] for at in shown]], widths)
        line.show_header = False
        print_human(line)
        for at in ids:
            name = "" if at == ids[0] else f"{titles[at].removesuffix(' ID').lower()} "
            if row[at]:
                print_human(f"  {name}{one_line(row[at])}")


def _shared_out(titles: Sequence[str], rows: Sequence[Row], room: int) -> list[int]:
    """Return the width of each column: what it needs, unless columns that may be cut have to give."""
    widths = [max(len(title), _longest(rows, at)) for at, title in enumerate(titles)]
    cut = [at for at, title in enumerate(titles) if title in CUT]
    for those, least in ((cut, CUT_CHARACTERS), (range(len(titles)), SHORT_CHARACTERS)):
        while those and sum(widths) + 2 * (len(widths) - 1) > room:
            widest = max(those, key=lambda at: widths[at])
            if widths[widest] <= least:
                break
            widths[widest] -= 1
    return widths


def print_fields(fields: Columns, item: Any) -> None:
    """Print the fields of an item that are not empty. A URL is never broken, so that it can be copied."""
    pairs = [(title, cell(item, path)) for title, path in map(_titled, fields)]
    given = [(title, value) for title, value in pairs if value]
    widest = max((len(title) for title, _ in given), default=0)
    for title, value in given:
        if "://" in value and " " not in value:
            print_text(f"{title:<{widest}}  {one_line(value)}")
        else:
            print_human(record([(title, value)], widest))


def _titled(column: Column) -> tuple[str, Cell]:
    if not isinstance(column, str):
        return column
    title, _, path = column.rpartition(" ")
    return title or path.replace("_", " "), path


def cell(item: Any, path: Cell) -> str:
    if not isinstance(path, str):
        return path(item)
    for name in path.split("."):
        item = None if item is None else getattr(item, name)
    return spell(item, is_size=path.endswith("_bytes"))


def spell(value: Any, *, is_size: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return ago(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return size(value) if is_size else str(value)


def mention_rest(page: "Page[Any] | ThreadMessages") -> None:
    if page.total > len(page.data):
        note(f"{len(page.data)} of {page.total}. More: --offset")


def moment_of(value: datetime | str | None) -> str:
    """Return a time as "2026-11-20 15:00 UTC", and a day or a time without a zone as it is written."""
    if value is None:
        return ""
    try:
        read = (
            value
            if isinstance(value, datetime) or len(value) <= LENGTH_OF_A_DAY
            else datetime.fromisoformat(value)
        )
    except ValueError:
        return str(value)
    return f"{read:%Y-%m-%d %H:%M %Z}".strip() if isinstance(read, datetime) else read


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long since, in the largest unit that fits."""
    if moment is None:
        return ""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    if seconds < MINUTE:
        return "just now" if seconds > -MINUTE else moment.strftime("%Y-%m-%d %H:%M")
    if seconds < HOUR:
        return f"{seconds // MINUTE} min ago"
    if seconds < DAY:
        return f"{seconds // HOUR} h ago"
    if seconds < 30 * DAY:
        return f"{seconds // DAY} d ago"
    return moment.strftime("%Y-%m-%d")


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count / 1024:.0f} kB"
    return f"{count / 1024 / 1024:.1f} MB"


@contextmanager
def progress(title: str) -> "Iterator[OnProgress | None]":
    """Show a progress bar on stderr if it is a terminal, once there is more than a moment's work."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(one_line(title), total=None)

    def show(done: int, total: int | None) -> None:
        if (total or done) >= _BYTES_WITH_PROGRESS:
            bar.start()  # a started one stays as it is
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person to confirm. A program must pass --yes."""
    import typer

    if yes:
        return
    if not can_ask():
        raise typer.BadParameter("there is no terminal to ask on: confirm with --yes")
    typer.confirm(one_line(question), abort=True, err=True)
