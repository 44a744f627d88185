"""The `postroom` command. One file a noun; the server adds its own commands to `app`."""

import sys
from typing import Annotated

import typer

from postroom_client import __version__
from postroom_client.cli import bridge, doctor, login, mcp, status
from postroom_client.cli.accounts import (
    approval_rules,
    audit,
    budget,
    domains,
    keys,
    pause,
    pods,
    policy,
    usage,
)
from postroom_client.cli.command import in_order, narrowed
from postroom_client.cli.events import listen, webhook
from postroom_client.cli.mailbox import attachments, inbox, messages, search, threads, wait
from postroom_client.cli.outward import approvals, drafts, send, simulate, suppressions

app = typer.Typer(
    name="postroom",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: loading Rich for it would double the time to start
)
app.add_typer(inbox.app, name="inbox")
send.add_to(app)
app.add_typer(drafts.app, name="drafts")
approval_rules.add_to(approvals.app)
app.add_typer(approvals.app, name="approvals")
app.add_typer(budget.app, name="budget")
pause.add_to(app)
app.add_typer(policy.app, name="policy")
app.add_typer(pods.app, name="pods")
app.add_typer(keys.app, name="keys")
audit.add_to(app)
app.add_typer(threads.app, name="threads")
app.add_typer(messages.app, name="messages")
app.add_typer(attachments.app, name="attachments")
search.add_to(app)
wait.add_to(app)
listen.add_to(app)
app.add_typer(webhook.app, name="webhook")
app.add_typer(suppressions.app, name="suppressions")
app.add_typer(domains.app, name="domains")
usage.add_to(app)
status.add_to(app)
simulate.add_to(app)
doctor.add_to(app)
login.add_to(app)
app.add_typer(bridge.app, name="bridge")
mcp.add_to(app)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"postroom {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Postroom: the post office for software agents."""


def main() -> None:
    arguments = in_order(sys.argv[1:])
    narrowed(app, arguments)(arguments)
