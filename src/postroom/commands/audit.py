"""`postroom audit verify`: checks exported audit logs without the server that wrote them."""

from pathlib import Path
from typing import Annotated

import typer

from postroom.commands.output import print_table
from postroom_client.cli.command import Json
from postroom_client.cli.groups import GROUPS


@GROUPS["audit"].command("verify")
def verify(
    files: Annotated[list[Path], typer.Argument(help="Exported files, or folders with them.")],
    as_json: Json = None,
) -> None:
    """Check exported audit logs: chain, signed heads and gaps. Needs no server."""
    from postroom.upkeep.verification.audit_files import AuditLog

    logs: dict[str, AuditLog] = {}
    for path in [each for given in files for each in _files_of(given)]:
        try:
            # Files of one folder belong to one account, as the server exports them.
            logs.setdefault(str(path.parent), AuditLog()).read(path.read_bytes())
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{path} cannot be read as an audit log: {error}") from None
    findings = [finding for log in logs.values() for finding in log.verify()]
    count = sum(len(log.entries) for log in logs.values())
    heads = sum(len(log.heads) for log in logs.values())
    shown = [{"id": each.id, "what": each.what} for each in findings]
    starts = sorted({min(log.entries) for log in logs.values() if log.entries} - {1})
    missing = "".join(f" A log begins with entry {first}: no file has those before it." for first in starts)
    print_table(shown, as_json, f"{count} entries and {heads} signed heads are correct.{missing}")
    if findings:
        raise typer.Exit(1)


def _files_of(path: Path) -> list[Path]:
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
