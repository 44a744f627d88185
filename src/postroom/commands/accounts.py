"""`postroom accounts`: who owns inboxes and keys."""

import os
import re
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import output
from postroom.commands.database import decide, read, require_account, with_database
from postroom.config import MOST_OF_A_LIMIT, PLANS, Config, Plan, load
from postroom_client.cli import app
from postroom_client.cli.command import Json, group

if TYPE_CHECKING:
    from postroom.storage.database import Database

accounts_app = group("Accounts own inboxes and keys (on the server's machine).")
app.add_typer(accounts_app, name="accounts")

ROWS_AT_ONCE = 200
LIMIT_FORM = f"up to {MOST_OF_A_LIMIT}, 0 for no limit, or default"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)B?", re.IGNORECASE)

AccountArgument = Annotated[str, typer.Argument(help="Id or name of the account.")]
StorageOption = Annotated[
    str | None, typer.Option("--storage", help="Storage limit for its email: 500MB, 10GB, or none.")
]


@accounts_app.command("create")
def create_account(
    name: Annotated[str, typer.Option(help="Name of the account.")],
    plan: Annotated[str, typer.Option(help=f"One of {', '.join(PLANS)}.")] = "free",
    storage: StorageOption = None,
    as_json: Json = None,
) -> None:
    """Create an account and print its key, once."""
    from postroom.accounts import keys
    from postroom.operations import operator

    token = keys.new_token()
    limit_bytes = None if storage is None else parse_size(storage)
    account = decide(operator.create_account, name, require_plan(plan), limit_bytes, token)
    shown = {"id": account.id, "name": account.name, "plan": account.plan, "key": token}
    output.print_record(shown, as_json, note="The key is shown only once: save it.")


@accounts_app.command("list")
def list_accounts(as_json: Json = None) -> None:
    """List the accounts, oldest first."""
    from postroom.accounts import accounts
    from postroom.clock import to_iso

    rows = [
        {
            "id": account.id,
            "name": account.name,
            "plan": account.plan,
            "inboxes": account.inbox_count,
            "storedBytes": account.stored_bytes,
            "storageLimitBytes": "none"
            if account.storage_limit_bytes is None
            else account.storage_limit_bytes,
            "createdAt": to_iso(account.created_at),
        }
        for account in read(accounts.list_all)
    ]
    output.print_table(rows, as_json, empty="No account yet: postroom accounts create --name NAME")


@accounts_app.command("rename")
def rename_account(
    account: AccountArgument,
    name: Annotated[str, typer.Argument(help="The new name.")],
    as_json: Json = None,
) -> None:
    """Rename an account; names are unique."""
    from postroom.operations import operator

    found = decide(operator.change_account, operator.AccountChange(name), account=account)
    output.done({"id": found.id, "name": name}, f"{found.id} is now called '{name}'.", as_json)


@accounts_app.command("plan")
def change_plan(
    account: AccountArgument,
    plan: Annotated[str | None, typer.Argument(help=f"One of {', '.join(PLANS)}.")] = None,
    storage: StorageOption = None,
    as_json: Json = None,
) -> None:
    """Show or change the plan of an account and its storage limit."""
    from msgspec import UNSET

    from postroom.operations import operator

    change = operator.AccountChange(
        plan=UNSET if plan is None else require_plan(plan),
        storage_limit_bytes=UNSET if storage is None else parse_size(storage),
    )
    found = decide(operator.change_account, change, account=account)
    limit = "none" if found.storage_limit_bytes is None else str(found.storage_limit_bytes)
    shown = {"id": found.id, "name": found.name, "plan": found.plan}
    shown |= {"storedBytes": str(found.stored_bytes), "storageLimitBytes": limit}
    output.print_record(shown, as_json, note="")


@accounts_app.command("update")
def change_limits(
    account: AccountArgument,
    sends_per_minute: Annotated[str | None, typer.Option(help=f"Of an inbox: {LIMIT_FORM}.")] = None,
    sends_per_day: Annotated[str | None, typer.Option(help=f"Of an inbox: {LIMIT_FORM}.")] = None,
    cold_per_day: Annotated[str | None, typer.Option(help=f"Strangers: {LIMIT_FORM}.")] = None,
    inboxes_per_day: Annotated[str | None, typer.Option(help=f"New ones: {LIMIT_FORM}.")] = None,
    requests_per_minute: Annotated[str | None, typer.Option(help=f"All its keys: {LIMIT_FORM}.")] = None,
    as_json: Json = None,
) -> None:
    """Set an account's own limits; without options, show those in force."""
    from postroom.accounts.rules import limits
    from postroom.operations import operator

    given = (sends_per_minute, sends_per_day, cold_per_day, inboxes_per_day, requests_per_minute)
    asked = {
        name: parse_limit(name, text)
        for name, text in zip(limits.NAMES, given, strict=True)
        if text is not None
    }
    found = decide(operator.change_limits, asked, account=account)
    in_force = limits.in_force(load(os.environ), found.limits)
    shown = {"id": found.id, "name": found.name}
    for name in limits.NAMES:
        value = getattr(in_force, name)
        shown[camel(name)] = "none" if value is None else str(value)
    output.print_record(shown, as_json, note="")


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def parse_limit(name: str, text: str) -> int | None:
    """Return None for `default`: the server's limit applies again."""
    if text == "default":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and int(text) <= MOST_OF_A_LIMIT):
        option = f"--{name.replace('_', '-')}"
        raise typer.BadParameter(f"must be {LIMIT_FORM}", param_hint=option)
    return int(text)


@accounts_app.command("delete")
def delete_account(
    account: AccountArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = None,
) -> None:
    """Permanently delete an account with all its inboxes, email and keys."""
    from postroom.operations import operator

    found = read(require_account, account)
    question = (
        f"Delete '{found.name}' with {found.inbox_count} inboxes and {found.stored_bytes} bytes of email?"
    )
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(1)
    decide(operator.delete_account, found.name, account=found.id)
    with_database(remove_rows)
    sentence = f"{found.id} is deleted. The server removes its email within minutes."
    output.done({"id": found.id, "deleted": True}, sentence, as_json)


async def remove_rows(db: "Database", config: Config) -> None:
    """Remove rows until only mail is left. If the command is stopped here, the server finishes it."""
    from postroom.clock import SystemClock
    from postroom.mailbox import inboxes
    from postroom.upkeep import account_removal

    while await db.write(account_removal.remove_some, SystemClock().now(), ROWS_AT_ONCE):
        pass
    db.ring(inboxes.GONE)


def parse_size(text: str) -> int | None:
    """Return the bytes; None for `none`."""
    if text == "none":
        return None
    found = SIZE.fullmatch(text.replace(" ", ""))
    if found is None:
        raise typer.BadParameter("must be like 500MB, 10GB or none", param_hint="--storage")
    return int(found[1]) * UNITS[found[2].upper()]


def require_plan(plan: str) -> Plan:
    for known in PLANS:
        if plan == known:
            return known
    raise typer.BadParameter(f"must be one of {', '.join(PLANS)}", param_hint="--plan")
