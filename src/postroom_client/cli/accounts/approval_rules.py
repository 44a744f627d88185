"""postroom approvals rules, require, free: which sends wait for a person, and who is asked."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import OfInbox, OfPod, command
from postroom_client.cli.context import CommandContext

if TYPE_CHECKING:
    from postroom_client.results import Account, ApiKey, ApprovalRules, Inbox, Pod
    from postroom_client.transport.exchange import Call

    Ruled = Account | Pod | Inbox | ApiKey

WHEN = {
    "always": "every send",
    "strangers": "sends to strangers",
    "attachments": "sends with files",
    "links": "sends with links",
    "risk": "sends in a suspicious thread",
}
WORDS = ", ".join(WHEN)
OfKey = Annotated[str | None, typer.Option("--key-id", help="Only for this key.")]


def rules(
    context: CommandContext, inbox_id: OfInbox = None, pod_id: OfPod = None, key_id: OfKey = None
) -> None:
    """Show which sends wait: by the rules of the account, or of a pod, an inbox or a key."""
    level = only_one(inbox_id, pod_id, key_id)
    context.show(_look_up(level), lambda found: _show(level, found))


def require(
    context: CommandContext,
    when: Annotated[
        list[str] | None, typer.Argument(metavar="[WHEN]...", help=f"{WORDS}.", show_default=False)
    ] = None,
    over_per_day: Annotated[
        int | None, typer.Option(min=0, help="Hold sends of an inbox beyond this many a day.")
    ] = None,
    reviewer: Annotated[
        list[str] | None, typer.Option(help="A reviewer's address, asked by email (repeatable).")
    ] = None,
    expires_hours: Annotated[int, typer.Option(min=1, max=720, help="Hours until a held send expires.")] = 72,
    approvals: Annotated[
        int, typer.Option(min=1, max=3, help="How many different people have to approve.")
    ] = 1,
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
    key_id: OfKey = None,
) -> None:
    """Hold sends for a person: these rules replace the ones there; all levels add up."""
    from postroom_client.results import ApprovalRules, OverPerDay

    counts = [] if over_per_day is None else [OverPerDay(over_per_day)]
    if not when and not counts and not reviewer:
        raise typer.BadParameter(f"say when: {WORDS}, or --over-per-day")
    asked = ApprovalRules([*(when or []), *counts], expires_hours, reviewer or [], approvals)
    level = only_one(inbox_id, pod_id, key_id)
    context.show(_change(asked, level), lambda found: _show(level, found))


def free(
    context: CommandContext, inbox_id: OfInbox = None, pod_id: OfPod = None, key_id: OfKey = None
) -> None:
    """Remove the approval rules. Messages that are held already stay held."""
    level = only_one(inbox_id, pod_id, key_id)
    context.show(_change(None, level), lambda found: _show(level, found))


def only_one(inbox_id: str | None, pod_id: str | None, key_id: str | None) -> tuple[str, str] | None:
    """Return the level that the rules belong to, as kind and id, or None for the account."""
    given = {"inbox": inbox_id, "pod": pod_id, "key": key_id}
    named = [(kind, value) for kind, value in given.items() if value is not None]
    if len(named) > 1:
        raise typer.BadParameter("name one of --inbox-id, --pod-id and --key-id")
    return named[0] if named else None


def _look_up(scope: tuple[str, str] | None) -> "Call[Any]":
    from postroom_client.calls import calls

    match scope:
        case ("inbox", target):
            return calls.get_inbox(target)
        case ("pod", target):
            return calls.get_pod(target)
        case ("key", target):
            return calls.get_key(target)
        case _:
            return calls.get_account()


def _change(asked: "ApprovalRules | None", scope: tuple[str, str] | None) -> "Call[Any]":
    from postroom_client.calls import calls

    match scope:
        case ("inbox", target):
            return calls.update_inbox(target, approval=asked)
        case ("pod", target):
            return calls.update_pod(target, approval=asked)
        case ("key", target):
            return calls.update_key(target, approval=asked)
        case _:
            return calls.update_account(approval=asked)


def _show(level: tuple[str, str] | None, found: "Ruled") -> None:
    output.print_human(output.record([(level[0] if level else "account", found.id), *_lines(found.approval)]))


def _lines(rules: "ApprovalRules | None") -> list[tuple[str, str]]:
    if rules is None or not rules.when:
        waits = [("held", "nothing")]
    else:
        waits = [("held", _spell(rule)) for rule in rules.when]
        waits += [("expires", f"after {rules.expires_hours} hours")]
    return waits + [("reviewer", address) for address in (rules.reviewers if rules else [])]


def _spell(rule: Any) -> str:
    return WHEN[rule] if isinstance(rule, str) else f"more than {rule.over_per_day} sends a day"


def add_to(app: typer.Typer) -> None:
    command(app, "rules")(rules)
    command(app, "require")(require)
    command(app, "free")(free)
