"""`postroom keys` with `--account`: keys of any account, without a key."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.commands import output
from postroom.commands.database import read, require_account, write
from postroom_client.cli.accounts import keys as key_commands
from postroom_client.cli.command import Limit, Offset, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom.accounts.keys import Key
    from postroom.storage.database import Tx

AccountOption = Annotated[
    str | None,
    typer.Option("--account", help="Id or name of an account: on the server's machine, without a key."),
]


@command(key_commands.app, "create")
def create_key(
    desk: Desk,
    name: key_commands.KeyName = "",
    pod_id: key_commands.OfPod = None,
    permission: key_commands.Permission = None,
    expires_at: key_commands.ExpiresAt = None,
    account: AccountOption = None,
) -> None:
    """Create a key of the account, or of a pod, and show it once."""
    if account is None:
        key_commands.create(desk, name, pod_id, permission, expires_at)
        return
    from postroom.accounts import audit, keys

    token = keys.new_token()

    def create(tx: "Tx", now: int) -> "Key":
        key = keys.add(tx, require_account(tx, account).id, None, name, token, now)
        audit.record_command(tx, "key.created", key.id, key.account_id, now)
        return key

    key = write(create)
    shown = {"id": key.id, "name": key.name, "key": token}
    output.print_record(shown, desk.is_json, note="The key is shown only now: keep it.")


@command(key_commands.app, "list")
def list_keys(
    desk: Desk,
    pod_id: key_commands.OfPod = None,
    limit: Limit = 50,
    offset: Offset = 0,
    account: AccountOption = None,
) -> None:
    """List the keys of the account, or of a pod, oldest first."""
    if account is None:
        key_commands.list_all(desk, pod_id, limit, offset)
        return
    from postroom.accounts import keys
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
        for key in read(lambda tx: keys.list_of_account(tx, require_account(tx, account).id))
    ]
    output.print_table(rows, desk.is_json, empty="No key: postroom keys create --account ACCOUNT --name NAME")


@command(key_commands.app, "revoke")
def revoke_key(desk: Desk, key_id: key_commands.KeyArgument, account: AccountOption = None) -> None:
    """Revoke a key, at once, also on open streams."""
    if account is None:
        key_commands.revoke(desk, key_id)
        return
    from postroom.accounts import audit, keys
    from postroom.errors import NotFound

    def revoke(tx: "Tx", now: int) -> None:
        own = keys.list_of_account(tx, require_account(tx, account).id)
        if key_id not in {key.id for key in own}:
            raise NotFound("No such key.")
        audit.record_command(tx, "key.revoked", key_id, keys.remove(tx, key_id), now)

    write(revoke)
    print(f"{key_id} is revoked.")
