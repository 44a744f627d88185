"""postroom notifications list, create, delete: who is notified outside the pages, and whether that works."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom_client.results import Notifications, ShownTarget

app = GROUPS["notifications"]

Kind = Annotated[
    Literal["slack", "teams", "discord", "ntfy", "email", "webhook"], typer.Argument(help="Kind of target.")
]
Target = Annotated[str, typer.Argument(help="A URL, or for email an address.")]
Occasions = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        help="held, paused, webhook_disabled, domain_broken, suspicious, rule_disabled or briefing"
        " (repeatable); held by default.",
    ),
]
Whole = Annotated[
    bool, typer.Option("--whole", help="Held and suspicious emails whole, instead of their subject.")
]
Hour = Annotated[
    int, typer.Option("--hour", min=0, max=23, help="When the daily briefing is sent, in --time-zone.")
]
Zone = Annotated[str, typer.Option("--time-zone", help="Such as Europe/Berlin.")]


@command(app, "list")
def list_all(context: CommandContext) -> None:
    """List the notification targets, what each is for, and whether it works."""
    from postroom_client.calls import calls

    context.show(calls.get_notifications(), _show)


@command(app, "create")
def add(
    context: CommandContext,
    kind: Kind,
    target: Target,
    on: Occasions = None,
    whole: Whole = False,
    hour: Hour = 8,
    time_zone: Zone = "UTC",
) -> None:
    """Add a target, or change what an existing one is for."""
    content = "email" if whole else "subject"
    asked = {
        "kind": kind,
        "target": target,
        "on": on or ["held"],
        "content": content,
        "briefingHour": hour,
        "timeZone": time_zone,
    }
    others = [each for each in _targets(context) if (each["kind"], each["target"]) != (kind, target)]
    _put(context, [*others, asked])


@command(app, "delete")
def remove(context: CommandContext, target: Target) -> None:
    """Remove a target."""
    from postroom_client.errors import NotFound

    known = _targets(context)
    others = [each for each in known if each["target"] != target]
    if len(others) == len(known):
        raise NotFound(f"'{target}' is not a target. See: postroom notifications list")
    _put(context, others)


def _targets(context: CommandContext) -> list[dict[str, Any]]:
    from postroom_client.calls import calls

    found = context.ask(calls.get_notifications()).targets
    return [
        {
            "kind": each.kind,
            "target": each.target,
            "on": each.on,
            "content": each.content,
            "briefingHour": each.briefing_hour,
            "timeZone": each.time_zone,
        }
        for each in found
    ]


def _put(context: CommandContext, targets: Sequence[dict[str, Any]]) -> None:
    from postroom_client.calls import calls

    context.show(calls.set_notifications(targets), _show)


def _show(found: "Notifications") -> None:
    if not found.targets:
        output.note("No targets yet. Add one: postroom notifications create email ann@example.org")
        return
    output.print_table(("kind", "target", "on", "content", ("last", _state)), found.targets)


def _state(target: "ShownTarget") -> str:
    if target.last_error:
        return f"failed {output.ago(target.failed_at)}: {target.last_error}"
    return f"sent {output.ago(target.told_at)}" if target.told_at else "nothing sent yet"
