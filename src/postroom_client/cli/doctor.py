"""postroom doctor: what works, what does not, and what to do about it."""

from typing import TYPE_CHECKING

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import FAILED, CommandContext

if TYPE_CHECKING:
    from postroom_client.cli.doctor_checks import Finding

MARKS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}


def doctor(context: CommandContext) -> None:
    """Check key, clock, DNS, ports, disk and queue. Exits with 1 when one fails."""
    from postroom_client.cli import doctor_checks

    findings = list(doctor_checks.examine(context.settings))
    raw = output.encode({"checks": [finding.to_json() for finding in findings]})
    context.show_result(raw, findings, _show)
    if any(finding.verdict == "fail" for finding in findings):
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    command(app, "doctor")(doctor)


def _show(findings: "list[Finding]") -> None:
    rows = [(MARKS[item.verdict], item.name, item.detail) for item in findings]
    output.print_human(output.table(("", "CHECK", "FOUND"), rows))
    for item in findings:
        if item.next_step:
            output.note(f"{item.name}: {item.next_step}")
