"""All commands of the server's machine: the operator's, added to the client's."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import accounts, backups, blobs, domains, keys, serving, transfer, verify  # noqa: F401
from postroom.commands.database import require_account, with_database, write
from postroom.config import Config, load
from postroom_client.cli import app as app

if TYPE_CHECKING:
    from postroom.storage.database import Database

OneAccount = Annotated[str, typer.Option("--account", help="Id or name of the account.")]


@app.command("login-link")
def login_link(
    account: OneAccount = "default",
    operator: Annotated[bool, typer.Option("--operator", help="With the operator's pages.")] = False,
) -> None:
    """Print a link that opens the pages of an account once (on the server's machine)."""
    from postroom.accounts import sessions
    from postroom.welcome import link_url

    token = sessions.new_token()
    write(lambda tx, now: sessions.add_link(tx, require_account(tx, account).id, operator, token, now))
    print(link_url(load(os.environ), token))


@app.command("migrate")
def migrate() -> None:
    """Bring the database of an earlier version to this version's schema (serve does it too)."""

    async def nothing_more(db: "Database", config: Config) -> None:
        print("The database is up to date.")

    with_database(nothing_more)
