"""All commands of the server's machine: the operator's, added to the client's."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import (  # noqa: F401
    accounts,
    backups,
    blobs,
    domains,
    keys,
    move,
    serving,
    transfer,
    verify,
)
from postroom.commands.database import require_account, with_database, write
from postroom.config import Config, load
from postroom_client.cli import app as app
from postroom_client.cli.words.help_text import put_examples

if TYPE_CHECKING:
    from postroom.accounts.sessions import SignInProof
    from postroom.storage.database import Database, Tx

OneAccount = Annotated[str, typer.Option("--account", help="Id or name of the account.")]


@app.command("login-link")
def login_link(
    account: OneAccount = "default",
    operator: Annotated[bool, typer.Option("--operator", help="With the operator's pages.")] = False,
    user: Annotated[str, typer.Option("--user", help="Address of a user who lost every other way in.")] = "",
) -> None:
    """Print a link that opens the pages of an account once (on the server's machine)."""
    from postroom.accounts import sessions
    from postroom.welcome import link_url

    token = sessions.new_token()

    def add(tx: "Tx", now: int) -> None:
        account_id = require_account(tx, account).id
        if user:
            sessions.put_link(tx, proof_of_user(tx, account_id, user), token, now)
        else:
            sessions.add_link(tx, account_id, operator, token, now)

    write(add)
    print(link_url(load(os.environ), token))


def proof_of_user(tx: "Tx", account_id: str, address: str) -> "SignInProof":
    from postroom.accounts.people import users
    from postroom.errors import NotFound

    found = users.find_by_email(tx, account_id, users.require_email(address))
    if found is None:
        raise NotFound(f"No user has the address {address}. See: postroom users list")
    return users.proof_of(found)


@app.command("migrate")
def migrate() -> None:
    """Bring the database of an earlier version to this version's schema (serve does it too)."""

    async def nothing_more(db: "Database", config: Config) -> None:
        print("The database is up to date.")

    with_database(nothing_more)


put_examples(app)
