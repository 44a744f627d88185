"""`postroom accounts`: who owns inboxes and keys."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom import tables
from postroom.commands.opened import read, write
from postroom.config import PLANS, Plan
from postroom_client.cli import app
from postroom_client.cli.command import group

if TYPE_CHECKING:
    from postroom.accounts.accounts import Account
    from postroom.storage.database import Tx

accounts_app = group("Accounts own inboxes and keys (on the server's machine).")
app.add_typer(accounts_app, name="accounts")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@accounts_app.command("create")
def create_account(
    name: Annotated[str, typer.Option(help="What to call it.")],
    plan: Annotated[str, typer.Option(help=f"One of {', '.join(PLANS)}.")] = "free",
    as_json: Json = False,
) -> None:
    """Create an account and print its key, once."""
    from postroom.accounts import accounts, audit, keys

    token = keys.new_token()
    known_plan = require_plan(plan)

    def create(tx: "Tx", now: int) -> "Account":
        account = accounts.add(tx, name, known_plan, now)
        key = keys.add(tx, account.id, None, "first key", token, now)
        audit.record_command(tx, "key.created", key.id, account.id, now)
        return account

    account = write(create)
    shown = {"id": account.id, "name": account.name, "plan": account.plan, "key": token}
    tables.print_record(shown, as_json, note="The key is shown only now: keep it.")


@accounts_app.command("list")
def list_accounts(as_json: Json = False) -> None:
    """List the accounts, oldest first."""
    from postroom.accounts import accounts
    from postroom.clock import to_iso

    rows = [
        {
            "id": account.id,
            "name": account.name,
            "plan": account.plan,
            "inboxes": account.inbox_count,
            "createdAt": to_iso(account.created_at),
        }
        for account in read(accounts.list_all)
    ]
    tables.print_table(rows, as_json, empty="No account yet: postroom accounts create --name NAME")


def require_plan(plan: str) -> Plan:
    for known in PLANS:
        if plan == known:
            return known
    raise typer.BadParameter(f"must be one of {', '.join(PLANS)}", param_hint="--plan")
