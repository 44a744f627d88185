"""postroom keys …: keys of the account and of its pods."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import ApiKey, Page

app = group("Keys of the account and of its pods.")

KeyArgument = Annotated[str, typer.Argument(help="Id of the key, key_…", show_default=False)]
KeyName = Annotated[str, typer.Option("--name", help="What the key is for.")]
OfPod = Annotated[str | None, typer.Option("--pod-id", help="Of this pod: its id or clientId.")]
Permission = Annotated[
    list[str] | None,
    typer.Option("--permission", help="read, draft, send, approve or manage (repeatable); all by default."),
]
ExpiresAt = Annotated[
    str | None, typer.Option("--expires-at", metavar="MOMENT", help="Until when: 2027-01-01T00:00:00Z.")
]


@command(app, "create")
def create(
    desk: Desk,
    name: KeyName = "",
    pod_id: OfPod = None,
    permission: Permission = None,
    expires_at: ExpiresAt = None,
) -> None:
    """Create a key of the account, or of a pod, and show it once."""
    from postroom_client.calls import shortcuts

    call = shortcuts.create_key(name, pod_id=pod_id, permissions=permission, expires_at=expires_at)
    desk.show(call, _show_new)


@command(app, "list")
def list_all(desk: Desk, pod_id: OfPod = None, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the keys of the account, or of a pod, oldest first."""
    from postroom_client.calls import shortcuts

    desk.show(shortcuts.list_keys(pod_id=pod_id, limit=limit, offset=offset), _show_page)


@command(app, "change")
def change(
    desk: Desk,
    key_id: KeyArgument,
    name: Annotated[str | None, typer.Option(help="What the key is for.")] = None,
    permission: Annotated[
        list[str] | None, typer.Option("--permission", help="What it may still do (repeatable).")
    ] = None,
    expires_at: ExpiresAt = None,
) -> None:
    """Change a key; of its permissions some can be taken away, and its end can come sooner."""
    from postroom_client.calls import calls

    call = calls.update_key(
        key_id,
        name=name,
        permissions=permission,
        expires_at=expires_at,
    )
    desk.show(call, _show_one)


@command(app, "revoke")
def revoke(desk: Desk, key_id: KeyArgument) -> None:
    """Revoke a key, at once, also on open streams."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_key(key_id))
    desk.done({"id": key_id, "deleted": True}, f"{key_id} is revoked.")


def _show_new(key: "ApiKey") -> None:
    output.print_human(output.record([("id", key.id), ("name", key.name), ("token", key.token or "")]))
    output.note("The token is shown only now: keep it.")


def _show_one(key: "ApiKey") -> None:
    pairs = [("id", key.id), ("name", key.name), ("may", ", ".join(key.permissions))]
    output.print_human(output.record(pairs))


def _show_page(page: "Page[ApiKey]") -> None:
    if not page.data:
        output.note("No key here. Create one: postroom keys create --name NAME")
        return
    output.print_human(
        output.table(("ID", "NAME", "KEY", "MAY", "LAST USED"), [_row(key) for key in page.data])
    )
    output.note_rest(page)


def _row(key: "ApiKey") -> output.Row:
    shown = f"{key.token_prefix}…{key.last4}"
    return key.id, key.name, shown, ", ".join(key.permissions), output.ago(key.last_used_at) or "never"
