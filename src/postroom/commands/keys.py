"""`postroom keys` with `--account`: keys of any account, without a key."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom.commands import output
from postroom.commands.database import decide, read, require_account
from postroom_client.cli.command import register
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.plain.rows import run, signature
from postroom_client.cli.plain.table import ROWS

if TYPE_CHECKING:
    from postroom.accounts.keys import Key
    from postroom.storage.database import Tx

ACCOUNT = inspect.Parameter(
    "account",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        typer.Option("--account", help="Id or name of an account: on the server's machine, without a key."),
    ],
)


def create_key(context: CommandContext, account: str | None, **values: Any) -> None:
    """Create a key of the account, or of a pod, and show it once."""
    if account is None:
        run(context, ROWS["keys create"], values)
        return
    if any(given not in (None, []) for name, given in values.items() if name != "name"):
        raise typer.BadParameter(
            "with --account a key of the whole account is made: only --name goes with it"
        )
    from postroom.accounts import keys
    from postroom.operations import operator

    token = keys.new_token()
    key = decide(operator.create_key, values["name"] or "", token, account=account)
    shown = {"id": key.id, "name": key.name, "key": token}
    output.print_record(shown, context.is_json, note="The key is shown only once: save it.")


def list_keys(context: CommandContext, account: str | None, **values: Any) -> None:
    """List the keys of the account, its pods and inboxes, or of one pod, oldest first."""
    if account is None:
        run(context, ROWS["keys list"], values)
        return
    from postroom.clock import to_iso

    rows = [
        {
            "id": key.id,
            "name": key.name,
            "key": f"{key.token_prefix}…{key.last4}",
            "inbox": key.inbox_id or "all",
            "createdAt": to_iso(key.created_at),
            "lastUsedAt": "never" if key.last_used_at is None else to_iso(key.last_used_at),
        }
        for key in read(_keys_of, account)
    ]
    output.print_table(
        rows, context.is_json, empty="No key: postroom keys create --account ACCOUNT --name NAME"
    )


def _keys_of(tx: "Tx", account: str) -> "list[Key]":
    from postroom.accounts import keys

    return keys.list_of_account(tx, require_account(tx, account).id)


def revoke_key(context: CommandContext, key_id: str, account: str | None) -> None:
    """Revoke a key, at once, also on open streams."""
    if account is None:
        run(context, ROWS["keys delete"], {"key_id": key_id})
        return
    from postroom.operations import operator

    decide(operator.revoke_key, key_id, account=account)
    output.done({"id": key_id, "deleted": True}, f"{key_id} is revoked.", context.wants_json)


def _extend(name: str, handler: Callable[..., None]) -> None:
    """Extend the client's command with one more option."""
    register(GROUPS["keys"], name, handler, [*signature(ROWS[f"keys {name}"]), ACCOUNT])


_extend("create", create_key)
_extend("list", list_keys)
_extend("delete", revoke_key)
