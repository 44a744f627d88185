"""postroom attachments get."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox.messages import MessageArgument
from postroom_client.cli.safe_text import one_line

if TYPE_CHECKING:
    from postroom_client.results import AttachmentText

app = GROUPS["attachments"]

FilenameArgument = Annotated[str, typer.Argument(help="Name of the file, as the message lists it.")]


@command(app, "get")
def get(
    context: CommandContext,
    message_id: MessageArgument,
    filename: FilenameArgument,
    to: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write it; - is stdout; its own name by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    infected: Annotated[
        bool, typer.Option("--infected", help="Even if it is infected (needs manage).")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="A small preview image instead.")] = False,
) -> None:
    """Download an attachment."""
    from postroom_client.calls import calls

    if preview:
        asked = calls.get_attachment_preview(message_id, filename)
    else:
        asked = calls.get_attachment(message_id, filename, infected_yes=infected)
    filename_here = f"{filename}.png" if preview else filename
    place = None if to == "-" else target(to, filename_here)
    if place is not None and place.exists() and not force:
        raise typer.BadParameter(f"{place} already exists: pass --force or --output")
    with output.progress(filename) as on_progress:
        content, _ = context.carry_out(asked, on_progress)
    if place is None:
        sys.stdout.buffer.write(content)
        return
    place.write_bytes(content)
    written = {"path": str(place), "sizeBytes": len(content)}
    context.done(written, f"{place} ({output.size(len(content))})")


@command(app, "upload")
def upload(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(help="The file.", exists=True, dir_okay=False, readable=True)],
    inbox_id: InboxId = None,
) -> None:
    """Upload a file, to be attached once by its id within the hour."""
    from postroom_client.calls import sending

    made = context.ask(sending.upload_file(context.require_inbox_id(inbox_id), file))
    context.done({"id": made.id, "filename": file.name}, f"{made.id}: attach it with --attach {made.id}")


def target(to: str | None, filename: str) -> Path:
    """Return a path in this folder: a stranger chose the name, so only its last part counts."""
    if to is None:
        return Path(one_line(Path(filename.replace("\\", "/")).name) or "attachment")
    return Path(to) / Path(filename).name if Path(to).is_dir() else Path(to)


def show_text(context: CommandContext, found: "AttachmentText") -> None:
    output.print_text(found.text)
    end = found.offset + len(found.text)
    if end < found.total:
        output.note(f"{end} of {found.total} characters. More: --offset {end}")
