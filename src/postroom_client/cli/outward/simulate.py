"""postroom simulate, postroom record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.context import FAILED, CommandContext
from postroom_client.cli.groups import app
from postroom_client.cli.safe_text import one_line

if TYPE_CHECKING:
    from postroom_client.scenarios.playing import StepResult


@command(app, "simulate")
def simulate(
    context: CommandContext,
    scenario: Annotated[Path, typer.Option(help="TOML file with the conversation.", exists=True)],
    inbox_id: InboxId = None,
) -> None:
    """Play a scripted conversation against an inbox. Exits with 1 when it goes differently."""
    from postroom_client.scenarios import playing, scenarios

    read = scenarios.read(scenario.read_text(encoding="utf-8", errors="replace"))
    report = playing.play(
        context.client, read, context.require_inbox_id(inbox_id), None if context.is_json else _show_step
    )
    if context.is_json:
        output.print_json(output.encode(report))
    else:
        output.note("Passed." if report.passed else "Failed.")
    if not report.passed:
        raise typer.Exit(FAILED)


@command(app, "record")
def record(
    context: CommandContext, thread_id: Annotated[str, typer.Argument(help="Id of the thread, thr_…")]
) -> None:
    """Print a scenario made from a thread, with every address replaced. Redirect it into a file."""
    from postroom_client.calls import calls
    from postroom_client.scenarios import scenarios

    page = context.ask(calls.list_thread_messages(thread_id, limit=100))
    messages = list(page.data)
    while len(messages) < page.total and page.data:
        page = context.ask(calls.list_thread_messages(thread_id, limit=100, offset=len(messages)))
        messages += page.data
    address = context.ask(calls.get_inbox(page.inbox_id)).address
    output.print_text(scenarios.record(messages, address).rstrip("\n"))


def _show_step(result: "StepResult") -> None:
    mark = "ok    " if result.passed else "FAILED"
    line = f"{mark} {result.number}. {result.what} ({result.seconds:.1f} s)"
    output.print_text(one_line(f"{line}: {result.reason}" if result.reason else line))
