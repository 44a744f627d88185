"""postroom contacts export, and the result of an erasure."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox.attachments import target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postroom_client.results import Job, StartedJob

app = GROUPS["contacts"]
WORDS = {"auditEntries": "audit entries", "calendarEvents": "calendar events"}


@command(app, "export")
def export(
    context: CommandContext,
    address: Annotated[str, typer.Argument(help="The contact.")],
    to: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write it; - is stdout; ADDRESS.zip by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export all that is stored about a contact: a zip file with a manifest."""
    from postroom_client.calls import calls

    place = None if to == "-" else target(to, f"{address}.zip")
    if place is not None and place.exists() and not force:
        raise typer.BadParameter(f"{place} already exists: pass --force or --output")
    with output.progress(address) as on_progress:
        content, _ = context.carry_out(calls.export_contact(address), on_progress)
    if place is None:
        sys.stdout.buffer.write(content)
        return
    place.write_bytes(content)
    written = {"path": str(place), "sizeBytes": len(content)}
    context.done(written, f"{place} ({output.size(len(content))})")


def name_job(context: CommandContext, started: "StartedJob", values: "Mapping[str, Any]") -> None:
    output.note(f"See its progress: postroom jobs get {started.job_id}")


def result_of(job: "Job") -> str:
    return ", ".join(f"{count} {WORDS.get(kind, kind)}" for kind, count in job.result.items() if count)
