"""postroom audit export: the whole audit log as a file that proves itself."""

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom_client.transport.exchange import Call

PAGE = 100
HEADS = 5  # asked for while the log is being written
Entry = dict[str, Any]


@command(GROUPS["audit"], "export")
def export(
    context: CommandContext, file: Annotated[Path, typer.Argument(help="The file to write; it is replaced.")]
) -> None:
    """Write the audit log with its signed head and keys, for `postroom audit verify`."""
    from postroom_client.calls import calls
    from postroom_client.transport.exchange import Call

    entries: dict[str, Entry] = {}
    _add_pages(context, entries)
    head: dict[str, Any] = {"count": -1}
    for _ in range(HEADS):
        if not _is_missing(entries, head["count"]):
            break
        head = _asked(context, calls.get_audit_head())
        _add_pages(context, entries, until=head["count"])
    keys = _asked(context, Call("GET", "/.well-known/postroom-keys.json", bool))["keys"]
    chained = sorted((each for each in entries.values() if each["sequence"]), key=itemgetter("sequence"))
    proven = [{"entry": each} for each in chained if each["sequence"] <= head["count"]]
    lines: list[object] = [*({"key": key} for key in keys), {"head": head}, *proven]
    file.write_bytes(b"".join(output.encode(line) + b"\n" for line in lines))
    context.done({"file": str(file), "entries": len(proven)}, f"{len(proven)} entries are in {file}.")


def _add_pages(context: CommandContext, entries: dict[str, Entry], until: int | None = None) -> None:
    """Add entries, newest first: all, or as long as entries up to a number are missing."""
    from postroom_client.calls import calls

    offset, found = 0, PAGE
    while found and (until is None or not _has_all(entries, until)):
        data = _asked(context, calls.list_audit(limit=PAGE, offset=offset))["data"]
        for entry in data:  # those of a page may come again on the next one
            known = entries.get(entry["id"])
            if known is None or known["sequence"] is None:
                entries[entry["id"]] = entry
        found = len(data)
        offset += found


def _has_all(entries: dict[str, Entry], until: int) -> bool:
    numbers = {each["sequence"] for each in entries.values()} - {None}
    return until in numbers and numbers.issuperset(range(min(numbers), until))


def _is_missing(entries: dict[str, Entry], until: int) -> bool:
    """Return whether a newer head is needed: none yet, or it does not cover an erasure that is named."""
    named = {each["erasedBy"] for each in entries.values() if "erasedBy" in each}
    return until < 0 or any((entries.get(each, {}).get("sequence") or until + 1) > until for each in named)


def _asked(context: CommandContext, call: "Call[Any]") -> Any:
    import msgspec

    return msgspec.json.decode(context.carry_out(call, None)[0])
