"""postroom doctor: what works, what does not, and what to do about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.context import FAILED, CommandContext
from postroom_client.cli.groups import app

if TYPE_CHECKING:
    from postroom_client.cli.doctor_checks import Finding

MARKS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}


SendTo = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Also send a test email there.")]


@command(app, "doctor")
def doctor(context: CommandContext, send_to: SendTo = None, inbox_id: InboxId = None) -> None:
    """Check key, clock, DNS, ports, disk and queue. Exits with 1 when one fails."""
    from postroom_client.cli import doctor_checks

    findings = list(doctor_checks.examine(context.settings))
    if send_to is not None:
        from postroom_client.cli.outward.test_email import send_test_email

        findings += send_test_email(context.client, context.require_inbox_id(inbox_id), send_to)
    raw = output.encode({"checks": [finding.to_json() for finding in findings]})
    context.show_result(raw, findings, _show)
    if any(finding.verdict == "fail" for finding in findings):
        raise typer.Exit(FAILED)


def _show(findings: "list[Finding]") -> None:
    mark = ("", lambda item: MARKS[item.verdict])
    output.print_table((mark, "check name", "result detail"), findings)
    for item in findings:
        if item.next_step:
            output.note(f"{item.name}: {item.next_step}")
