"""postroom inbox …"""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.accounts.keys import ExpiresAt
from postroom_client.cli.command import Limit, Offset, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import ApiKey, Inbox, Page

app = group("Inboxes and their keys.")
keys_app = group("Keys that reach one inbox alone.")
app.add_typer(keys_app, name="keys")

InboxArgument = Annotated[str, typer.Argument(help="The inbox: id, address or name.", show_default=False)]


@command(app, "create")
def create(
    desk: Desk,
    mailbox_name: Annotated[str, typer.Argument(help="The part of the address before the @.")],
    display_name: Annotated[str | None, typer.Option(help="The name that From shows.")] = None,
    domain: Annotated[str | None, typer.Option(help="A verified domain of the account.")] = None,
    pod_id: Annotated[str | None, typer.Option(help="In this pod: its id or clientId.")] = None,
    webhook_url: Annotated[str | None, typer.Option(help="A webhook of its own.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Make it the default inbox.")] = False,
) -> None:
    """Create an inbox. The first one becomes the default."""
    from postroom_client.calls import calls

    call = calls.create_inbox(
        mailbox_name, display_name=display_name, domain=domain, pod_id=pod_id, webhook_url=webhook_url
    )
    inbox = desk.show(call, show_inbox)
    if default or not desk.settings.inbox_id:
        make_default(desk, inbox.id)


@command(app, "list")
def list_all(desk: Desk, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the inboxes, newest first."""
    from postroom_client.calls import calls

    def show(page: "Page[Inbox]") -> None:
        if not page.data:
            output.note("No inbox yet. Create one: postroom inbox create NAME")
            return
        rows = [_row(inbox, is_default=inbox.id == desk.settings.inbox_id) for inbox in page.data]
        output.print_human(output.table(("ID", "ADDRESS", "NAME", "CREATED", ""), rows))
        output.note_rest(page)

    desk.show(calls.list_inboxes(limit=limit, offset=offset), show)


@command(app, "get")
def get(desk: Desk, inbox_id: InboxArgument) -> None:
    """Show an inbox."""
    from postroom_client.calls import calls

    desk.show(calls.get_inbox(inbox_id), show_inbox)


@command(app, "update")
def update(
    desk: Desk,
    inbox_id: InboxArgument,
    display_name: Annotated[str | None, typer.Option(help="The new name; empty clears it.")] = None,
    webhook_url: Annotated[str | None, typer.Option(help="The inbox's own webhook; empty clears it.")] = None,
) -> None:
    """Change an inbox."""
    from msgspec import UNSET

    from postroom_client.calls import calls

    if display_name is None and webhook_url is None:
        raise typer.BadParameter("nothing to change: pass --display-name or --webhook-url")
    changes = calls.update_inbox(
        inbox_id,
        display_name=UNSET if display_name is None else display_name or None,
        webhook_url=UNSET if webhook_url is None else webhook_url or None,
    )
    desk.show(changes, show_inbox)


@command(app, "delete")
def delete(
    desk: Desk,
    inbox_id: InboxArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete an inbox with all its mail."""
    from postroom_client.calls import calls

    output.confirm(f"Delete {inbox_id} and all its mail?", yes=yes)
    desk.ask(calls.delete_inbox(inbox_id))
    if desk.settings.inbox_id == inbox_id:
        make_default(desk, None)
    desk.done({"id": inbox_id, "deleted": True}, f"{inbox_id} is deleted.")


@command(app, "use")
def use(desk: Desk, inbox_id: InboxArgument) -> None:
    """Make an inbox the default of this profile."""
    from postroom_client.calls import calls

    inbox = desk.show(calls.get_inbox(inbox_id), show_inbox)
    make_default(desk, inbox.id)


@command(keys_app, "create")
def create_key(
    desk: Desk,
    inbox_id: InboxArgument,
    name: Annotated[str, typer.Option(help="What the key is for.")] = "",
    permission: Annotated[
        list[str] | None,
        typer.Option("--permission", help="read, draft or send (repeatable); all by default."),
    ] = None,
    expires_at: ExpiresAt = None,
) -> None:
    """Create a key and print it, once."""
    from postroom_client.calls import calls

    desk.show(calls.create_api_key(inbox_id, name, permissions=permission, expires_at=expires_at), _show_key)
    output.note("The token is shown only now: keep it.")


@command(keys_app, "list")
def list_keys(desk: Desk, inbox_id: InboxArgument, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the keys of an inbox, oldest first."""
    from postroom_client.calls import calls

    def show(page: "Page[ApiKey]") -> None:
        if not page.data:
            output.note(f"No key yet. Create one: postroom inbox keys create {inbox_id} --name NAME")
            return
        rows = [
            (key.id, key.name, f"{key.token_prefix}…{key.last4}", output.ago(key.last_used_at) or "never")
            for key in page.data
        ]
        output.print_human(output.table(("ID", "NAME", "KEY", "LAST USED"), rows))

    desk.show(calls.list_api_keys(inbox_id, limit=limit, offset=offset), show)


@command(keys_app, "revoke")
def revoke_key(
    desk: Desk, inbox_id: InboxArgument, key_id: Annotated[str, typer.Argument(help="Id of the key, key_…")]
) -> None:
    """Revoke a key of an inbox, at once."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_api_key(inbox_id, key_id))
    desk.done({"id": key_id, "deleted": True}, f"{key_id} is revoked.")


def make_default(desk: Desk, inbox_id: str | None) -> None:
    """Remembered only where the profile is the one that the command used."""
    from postroom_client import profiles

    if not desk.is_from_profile:
        return
    known = profiles.load()
    profile = known.find(desk.settings.profile)
    assert profile is not None
    changed = profiles.Profile(profile.base_url, profile.api_key, inbox_id)
    profiles.save(known.with_profile(desk.settings.profile, changed, make_current=False))
    output.note("There is no default inbox now." if inbox_id is None else f"{inbox_id} is the default inbox.")


def show_inbox(inbox: "Inbox") -> None:
    pairs = [
        ("id", inbox.id),
        ("address", inbox.address),
        ("name", inbox.display_name or ""),
        ("created", output.ago(inbox.created_at)),
    ]
    if inbox.webhook_url:
        pairs.append(("webhook", inbox.webhook_url))
    if inbox.webhook_secret:
        pairs.append(("webhook secret", f"{inbox.webhook_secret}   (shown only now: keep it)"))
    output.print_human(output.record(pairs))


def _row(inbox: "Inbox", *, is_default: bool) -> output.Row:
    mark = "default" if is_default else ""
    return inbox.id, inbox.address, inbox.display_name or "", output.ago(inbox.created_at), mark


def _show_key(key: "ApiKey") -> None:
    output.print_human(output.record([("id", key.id), ("name", key.name), ("token", key.token or "")]))
