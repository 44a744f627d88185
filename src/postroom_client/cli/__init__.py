"""The `postroom` command. One file a noun; the server adds its own commands to `app`."""

import sys
from typing import Annotated

import typer

from postroom_client.cli import bridge, doctor, login, mcp, status
from postroom_client.cli import version as versions
from postroom_client.cli.accounts import approval_rules, budget, notifications, pause
from postroom_client.cli.command import in_order, narrowed
from postroom_client.cli.events import listen, webhook
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox import inbox, search, threads, wait
from postroom_client.cli.outward import send, simulate
from postroom_client.cli.plain import rows, table
from postroom_client.cli.ways import connect
from postroom_client.cli.words.examples import EXAMPLES
from postroom_client.cli.words.help_text import EPILOG, SectionedHelp, put_examples

app = typer.Typer(
    name="postroom",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: loading Rich for it would double the time to start
    cls=SectionedHelp,
    epilog=EPILOG,
)
BY_HAND = (inbox, threads, budget, notifications, webhook)  # they have put themselves below their nouns

for name, noun in GROUPS.items():
    if " " not in name:
        app.add_typer(noun, name=name)
for row in table.ROWS.values():
    rows.add(row, GROUPS.get(row.name.rpartition(" ")[0], app))
send.add_to(app)
approval_rules.add_to(GROUPS["approvals"])
pause.add_to(app)
search.add_to(app)
wait.add_to(app)
listen.add_to(app)
status.add_to(app)
simulate.add_to(app)
doctor.add_to(app)
connect.add_to(app)
login.add_to(app)
app.add_typer(bridge.app, name="bridge")
mcp.add_to(app)
put_examples(app, EXAMPLES)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(versions.describe())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Postroom: the post office for software agents."""


def main() -> None:
    arguments = in_order(sys.argv[1:])
    narrowed(app, arguments)(arguments)
