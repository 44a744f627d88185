"""postroom status: the connection, the default inbox and the bridge."""

from typing import TYPE_CHECKING, Any

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import app

if TYPE_CHECKING:
    from postroom_client.errors import PostroomError


@command(app, "status")
def status(context: CommandContext) -> None:
    """Show connection, default inbox and bridge. Exits with 1 without a connection."""
    report, error = survey(context)
    context.show_result(output.encode(report), report, _show)
    if error is not None:
        raise error


def survey(context: CommandContext) -> "tuple[dict[str, Any], PostroomError | None]":
    from postroom_client.errors import PostroomError

    report: dict[str, Any] = {
        "profile": context.settings.profile,
        "api": {"baseUrl": context.settings.base_url, "connected": False},
        "inbox": None,
        "bridge": bridge_state(context.settings.profile),
    }
    try:
        report["api"] |= _account(context)
        report["inbox"] = _inbox(context)
    except PostroomError as error:
        return report, error
    return report, None


def bridge_state(profile: str) -> dict[str, Any]:
    """Return whether the bridge runs and its process: it holds its lock file while it runs."""
    from postroom_client import profiles

    place = profiles.bridge_lock_path(profile)
    if not place.exists() or not profiles.is_locked(place):
        return {"running": False}
    pid = place.read_text(errors="replace").strip()
    return {"running": True, "pid": int(pid) if pid.isascii() and pid.isdigit() else None}


def _account(context: CommandContext) -> dict[str, Any]:
    from postroom_client.calls import calls

    me = context.ask(calls.me())
    key = {"id": me.key_id, "scope": me.scope, "podId": me.pod_id, "inboxId": me.inbox_id}
    return {
        "connected": True,
        "accountId": me.account_id,
        "account": me.account_name,
        "plan": me.plan,
        "key": {**key, "permissions": me.permissions},
    }


def _inbox(context: CommandContext) -> dict[str, Any] | None:
    from postroom_client.calls import calls

    inbox_id = context.settings.inbox_id
    if inbox_id is None:
        return None
    inbox = context.ask(calls.get_inbox(inbox_id))
    unread = context.ask(calls.list_threads(inbox_id, is_read=False, limit=1)).total
    return {"id": inbox.id, "address": inbox.address, "unreadThreads": unread}


def _scope(key: dict[str, Any]) -> str:
    """Return what the key sees and may do, as "inbox inb_…: read, send"."""
    target = key["inboxId"] or key["podId"]
    return f"{key['scope']} {target or ''}".strip() + f": {', '.join(key['permissions'])}"


def _show(report: dict[str, Any]) -> None:
    api, inbox, bridge = report["api"], report["inbox"], report["bridge"]
    connection = f"connected as {api['account']} ({api['plan']})" if api["connected"] else "not connected"
    pairs = [("profile", report["profile"]), ("server", api["baseUrl"]), ("API", connection)]
    if api["connected"]:
        pairs.append(("key", _scope(api["key"])))
    if inbox is not None:
        pairs.append(
            ("default inbox", f"{inbox['address']} ({inbox['id']}), {inbox['unreadThreads']} unread")
        )
    elif api["connected"]:
        pairs.append(("default inbox", "none: postroom inboxes use INBOX_ID"))
    pairs.append(("bridge", f"running (process {bridge['pid']})" if bridge["running"] else "not running"))
    output.print_human(output.record(pairs))
