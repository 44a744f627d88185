"""postroom audit export: the whole audit log as a file that proves itself."""

from pathlib import Path
from typing import Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

PAGE = 100


@command(GROUPS["audit"], "export")
def export(
    context: CommandContext, file: Annotated[Path, typer.Argument(help="The file to write; it is replaced.")]
) -> None:
    """Write the audit log with its signed head and keys, for `postroom audit verify`."""
    import msgspec

    from postroom_client.calls import calls
    from postroom_client.transport.exchange import Call

    head, _ = context.carry_out(calls.get_audit_head(), None)  # first: what is written later is behind it
    keys, _ = context.carry_out(Call("GET", "/.well-known/postroom-keys.json", bool), None)
    lines = [{"key": key} for key in msgspec.json.decode(keys)["keys"]] + [
        {"head": msgspec.json.decode(head)}
    ]
    entries: dict[str, object] = {}  # by id: those of a page may come again on the next one
    offset, found = 0, PAGE
    while found:
        raw, page = context.carry_out(calls.list_audit(limit=PAGE, offset=offset), None)
        for entry in msgspec.json.decode(raw)["data"]:
            entries[entry["id"]] = entry
        found = len(page.data)
        offset += found
    lines += [{"entry": entry} for entry in reversed(entries.values())]
    file.write_bytes(b"".join(output.encode(line) + b"\n" for line in lines))
    context.done({"file": str(file), "entries": len(entries)}, f"{len(entries)} entries are in {file}.")
