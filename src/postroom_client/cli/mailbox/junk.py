"""postroom junk teach: a folder of emails as examples of junk, or of wanted email."""

import base64
import contextlib
import mailbox
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext

if TYPE_CHECKING:
    from postroom_client.results import JunkExamples

TOGETHER, TOGETHER_BYTES = 50, 4_000_000
MOST_BYTES = 1_000_000  # of one email


def teach(
    context: CommandContext,
    place: Annotated[Path, typer.Argument(help="A folder of emails (.eml, mbox, Maildir), or one file.")],
    is_junk: Annotated[
        bool, typer.Option("--junk/--wanted", help="Whether all of them are junk, or wanted.")
    ],
) -> None:
    """Teach the junk filter with emails of another mail client; they are not stored."""
    from postroom_client.calls import calls

    if not place.exists():
        raise typer.BadParameter(f"{place} does not exist")
    taught, raw = 0, b""
    for batch in batches(read_emails(place)):
        taught += len(batch)
        raw, told = context.carry_out(calls.teach_junk_filter(is_junk, batch), None)
    if not taught:
        raise typer.BadParameter(f"{place} holds no email up to {MOST_BYTES // 1000} kB")
    output.note(f"{taught} emails are taught as {'junk' if is_junk else 'wanted'}.")
    context.show_result(raw, told, show_counts)


def show_counts(told: "JunkExamples") -> None:
    counts = {"junk": told.junk, "wanted": told.wanted, "waiting": told.waiting}
    output.print_human(output.record([(name, str(count)) for name, count in counts.items()]))


def read_emails(place: Path) -> Iterator[bytes]:
    """Yield the emails of the folder. Leave out files that are too large or have no header."""
    files = [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())
    for file in files:
        for raw in read_file(file):
            head = raw[:2000].lower()
            if len(raw) <= MOST_BYTES and (b"from:" in head or b"received:" in head):
                yield raw


def read_file(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        is_mbox = opened.read(5) == b"From "
    if not is_mbox:
        yield file.read_bytes() if file.stat().st_size <= MOST_BYTES else b""
        return
    with contextlib.closing(mailbox.mbox(file, create=False)) as box:
        for key in box.iterkeys():
            yield box.get_bytes(key)


def batches(emails: Iterator[bytes]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for raw in emails:
        if len(batch) >= TOGETHER or size + len(raw) > TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(base64.b64encode(raw).decode())
        size += len(raw)
    if batch:
        yield batch


def add_to(group: typer.Typer) -> None:
    command(group, "teach")(teach)
