"""postroom junk teach: a folder of emails as examples of junk, or of wanted email."""

import contextlib
import mailbox
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.limits import LESSON_BYTES

if TYPE_CHECKING:
    from postroom_client.results import JunkExamples


def teach(
    context: CommandContext,
    place: Annotated[Path, typer.Argument(help="A folder of emails (.eml, mbox, Maildir), or one file.")],
    is_junk: Annotated[
        bool, typer.Option("--junk/--wanted", help="Whether all of them are junk, or wanted.")
    ],
) -> None:
    """Teach the junk filter with emails of another mail client; they are not stored."""
    from postroom_client.calls.shortcuts import teach_junk
    from postroom_client.errors import PostroomError

    if not place.exists():
        raise typer.BadParameter(f"{place} does not exist")
    emails = Counted(read_emails(place))
    try:
        raw, examples = context.carry_out(teach_junk(emails, is_junk=is_junk), None)
    except PostroomError:
        if not context.is_json:  # then all that is said is the error
            output.note(f"Stopped after {emails.count} emails. Run it again: an email counts once.")
        raise
    if not emails.count:
        raise typer.BadParameter(f"{place} holds no email")
    output.note(f"{emails.count} emails are taught as {'junk' if is_junk else 'wanted'}.")
    context.show_result(raw, examples, show_counts)


class Counted:
    """Emails, and how many of them were read."""

    def __init__(self, emails: Iterator[bytes]) -> None:
        self._emails = emails
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for raw in self._emails:
            self.count += 1
            yield raw


def show_counts(examples: "JunkExamples") -> None:
    counts = {"junk": examples.junk, "wanted": examples.wanted, "waiting": examples.waiting}
    output.print_human(output.record([(name, str(count)) for name, count in counts.items()]))


def read_emails(place: Path) -> Iterator[bytes]:
    """Yield the emails of the folder, of each the beginning. Leave out files that have no header."""
    files = [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())
    for file in files:
        for raw in read_file(file):
            head = raw[:2000].lower()
            if b"from:" in head or b"received:" in head:
                yield raw


def read_file(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        start = opened.read(LESSON_BYTES)
    if not start.startswith(b"From "):
        yield start
        return
    with contextlib.closing(mailbox.mbox(file, create=False)) as box:
        for key in box.iterkeys():
            with contextlib.closing(box.get_file(key)) as email:
                yield email.read(LESSON_BYTES)


def add_to(group: typer.Typer) -> None:
    command(group, "teach")(teach)
