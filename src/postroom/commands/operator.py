"""All commands on the server's machine: the operator's, added to the client's."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import (  # noqa: F401
    accounts,
    audit,
    backups,
    blobs,
    certificates,
    domains,
    keys,
    move,
    output,
    serving,
    setup,
    transfer,
    verify,
)
from postroom.commands.database import decide, with_database
from postroom.config import Config, load
from postroom_client.cli import app as app
from postroom_client.cli.command import Json
from postroom_client.cli.words.help_text import put_examples

if TYPE_CHECKING:
    from postroom.storage.database import Database

OneAccount = Annotated[str, typer.Option("--account", help="Id or name of the account.")]


@app.command("login-link")
def login_link(
    account: OneAccount = "default",
    operator: Annotated[bool, typer.Option("--operator", help="With the operator's pages.")] = False,
    user: Annotated[str, typer.Option("--user", help="Address of a user who cannot sign in otherwise.")] = "",
    as_json: Json = None,
) -> None:
    """Print a link that opens the pages of an account once (on the server's machine)."""
    from postroom.accounts import sessions
    from postroom.operations.operator import add_login_link, add_login_link_of_user
    from postroom.welcome import link_url

    token = sessions.new_token()
    if user:
        decide(add_login_link_of_user, user, token, account=account)
    else:
        decide(add_login_link, token, operator, account=account)
    url = link_url(load(os.environ), token)
    output.done({"url": url}, url, as_json)


@app.command("migrate")
def migrate(
    create: Annotated[bool, typer.Option("--create", help="Make the database if there is none.")] = False,
    as_json: Json = None,
) -> None:
    """Bring the database of an earlier version to this version's schema (serve does it too)."""

    async def nothing_more(db: "Database", config: Config) -> None:
        output.done({"upToDate": True}, "The database is up to date.", as_json)

    with_database(nothing_more, may_create=create)


put_examples(app)
