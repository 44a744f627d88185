"""The output of `postroom --help`: commands by purpose, and an example below each."""

from typing import Any

import typer
from typer.core import TyperGroup

from postroom_client.cli.words.examples import EXAMPLES

SECTIONS: dict[str, list[str]] = {
    "Mail": "send reply wait listen search inbox threads messages junk attachments contacts jobs".split()
    + "drafts templates rules briefing agenda calendar".split(),
    "Who decides": "approvals pause resume policy budget suppressions audit usage".split(),
    "Account": "keys pods users domains connections connect webhook webhooks notifications feedback".split(),
    "Agents": "mcp bridge simulate record".split(),
    "This computer": "login logout profiles open status doctor".split(),
    "Server": "serve setup certificates migrate login-link accounts".split()
    + "backup restore verify move blobs import".split(),
}
EPILOG = "postroom help COMMAND is the same as postroom COMMAND --help; postroom version as --version."


class SectionedHelp(TyperGroup):
    """The first page of help, by sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        named = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        known = {name: command for name, command in named.items() if command and not command.hidden}
        listed = {name for names in SECTIONS.values() for name in names}
        others = [name for name in known if name not in listed]
        limit = formatter.width - 6 - max(map(len, known), default=0)
        for title, names in {**SECTIONS, "Others": others}.items():
            rows = [(name, known[name].get_short_help_str(limit)) for name in names if name in known]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def put_examples(app: typer.Typer, path: str = "") -> None:
    """Adds the examples below the help of every command."""
    for command in app.registered_commands:
        name = f"{path}{command.name}"
        command.epilog = f"Example: postroom {name} {EXAMPLES.get(name, '')}".rstrip()
    for group in app.registered_groups:
        if group.typer_instance is not None:
            put_examples(group.typer_instance, f"{path}{group.name} ")


def as_options(arguments: list[str]) -> list[str]:
    """`help` and `version` as words mean the options."""
    if arguments[:1] == ["help"]:
        return [*arguments[1:], "--help"]
    return ["--version"] if arguments == ["version"] else arguments
