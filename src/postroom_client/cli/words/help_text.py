"""The output of `postroom --help`: commands by purpose, and an example below each."""

from typing import Any

import typer

from postroom_client.cli.words.examples import EXAMPLES
from postroom_client.cli.words.group import Program

SECTIONS: dict[str, list[str]] = {
    "Email": "send reply wait listen search inboxes threads messages junk attachments contacts jobs".split()
    + "drafts templates rules briefing agenda calendars calendar-events".split(),
    "Approval and limits": "approvals pause resume policies budgets suppressions audit usage".split(),
    "Account": "settings keys pods users domains connections connect webhook webhooks".split()
    + "notifications feedback".split(),
    "Agents": "mcp bridge simulate record".split(),
    "This computer": "login logout profiles open status doctor".split(),
    "Server": "serve setup certificates migrate login-link accounts".split()
    + "backup restore verify move blobs import".split(),
}
EPILOG = "Help on a command: postroom COMMAND --help"


class SectionedHelp(Program):
    """The first page of help, by sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        listed = {name for names in SECTIONS.values() for name in names}
        others = [name for name in self.list_commands(ctx) if name not in listed]
        for title, names in {**SECTIONS, "Others": others}.items():
            self.write_commands(formatter, title, names)


def put_examples(app: typer.Typer, path: str = "") -> None:
    """Add the examples below the help of every command."""
    for command in app.registered_commands:
        name = f"{path}{command.name}"
        command.epilog = f"Example: postroom {name} {EXAMPLES.get(name, '')}".rstrip()
    for group in app.registered_groups:
        if group.typer_instance is not None:
            put_examples(group.typer_instance, f"{path}{group.name} ")


def as_options(arguments: list[str]) -> list[str]:
    """Return the arguments with the words `help` and `version` as options."""
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    return ["--version"] if arguments == ["version"] else arguments
