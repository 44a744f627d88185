"""The `postroom` command. One file per noun; the server adds its own commands to `app`."""

import sys
from typing import Annotated

import typer

from postroom_client.cli import bridge, doctor, login, mcp, status
from postroom_client.cli import version as versions
from postroom_client.cli.accounts import approval_rules, audit, budget, notifications, pause
from postroom_client.cli.command import in_order, narrowed
from postroom_client.cli.connections import connect
from postroom_client.cli.events import listen, webhook
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.groups import app as app
from postroom_client.cli.mailbox import calendar, inbox, junk, rules, search, threads, wait
from postroom_client.cli.outward import send, simulate
from postroom_client.cli.plain import rows, table
from postroom_client.cli.words.help_text import put_examples

# Importing them registers their commands.
BY_HAND = (
    inbox,
    threads,
    search,
    wait,
    calendar,
    send,
    simulate,
    listen,
    webhook,
    connect,
    audit,
    budget,
    notifications,
    pause,
    login,
    status,
    doctor,
    bridge,
    mcp,
)
for row in table.ROWS.values():
    rows.add(row, GROUPS.get(row.name.rpartition(" ")[0], app))
approval_rules.add_to(GROUPS["approvals"])
rules.add_to(GROUPS["rules"])
junk.add_to(GROUPS["junk"])
put_examples(app)


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
    """Postroom: self-hosted email for software agents."""


def main() -> None:
    arguments = in_order(app, sys.argv[1:])
    narrowed(app, arguments)(arguments)
