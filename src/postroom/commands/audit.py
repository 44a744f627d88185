"""`postroom audit verify`: checks exported audit logs without the server that wrote them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom import ids
from postroom.commands.output import print_table
from postroom_client.cli.command import Json
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom.upkeep.verification.audit_files import AuditLog


@GROUPS["audit"].command("verify")
def verify(
    files: Annotated[
        list[Path], typer.Argument(help="Exported files or folders; also heads, keys and receipts.")
    ],
    keys: Annotated[
        Path | None, typer.Option(help="Trust only the keys of this file, a copy that you kept elsewhere.")
    ] = None,
    as_json: Json = None,
) -> None:
    """Check exported audit logs: chain, signed heads, gaps and receipts. Needs no server."""
    from postroom.upkeep.verification.audit_files import AuditLog, bring_together

    trusted = None
    if keys is not None:
        known = AuditLog()
        _read(known, keys)
        trusted = known.keys
    by_folder: dict[Path, AuditLog] = {}
    for path in [each for given in files for each in _files_of(given)]:
        # Files of one folder belong to one account, as the server exports them.
        folder = path.resolve().parent
        named = folder.name if folder.name.startswith(f"{ids.ACCOUNT}_") else ""
        _read(by_folder.setdefault(folder, AuditLog(named, trusted)), path)
    logs = bring_together(list(by_folder.values()))
    if not any(log.entries or log.heads or log.receipts for log in logs):
        raise typer.BadParameter("no audit log is there. `postroom audit export FILE` writes one.")
    findings = [finding for log in logs for finding in log.verify()]
    shown = [{"id": each.id, "what": each.what} for each in findings]
    print_table(shown, as_json, " ".join(_sentences(logs, is_pinned=trusted is not None)))
    if findings:
        raise typer.Exit(1)


def _sentences(logs: "list[AuditLog]", *, is_pinned: bool) -> list[str]:
    """Return what was found correct, and what the files cannot prove."""
    heads, receipts = sum(len(log.heads) for log in logs), sum(len(log.receipts) for log in logs)
    entries = sum(len(log.entries) for log in logs)
    also = f", and {_counted(receipts, 'receipt', 'receipts')}" if receipts else ""
    heads_told = _counted(heads, "signed head", "signed heads")
    sentences = [f"{_counted(entries, 'entry', 'entries')} and {heads_told} are correct{also}."]
    for log in logs:
        first, last = min(log.entries, default=1), max(log.entries, default=0)
        signed = max((head["count"] for head in log.heads), default=0)
        if first > 1:
            sentences.append(f"A log begins with entry {first}: no file has those before it.")
        if last > signed:
            sentences.append(f"No signed head covers the entries after {signed}.")
    if not is_pinned and (heads or receipts):
        sentences.append("The keys are those of the files: `--keys` compares them with your own copy.")
    return sentences


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _read(log: "AuditLog", path: Path) -> None:
    try:
        log.read(path.read_bytes())
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise typer.BadParameter(f"{path} cannot be read as an audit log: {error}") from None


def _files_of(path: Path) -> list[Path]:
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
