"""postroom budgets set, clear: how much an inbox or a key may send."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.accounts.approval_rules import OfKey, only_one
from postroom_client.cli.command import OfInbox, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS

if TYPE_CHECKING:
    from postroom_client.results import ApiKey, Budget, Inbox
    from postroom_client.transport.exchange import Call

app = GROUPS["budgets"]

Count = Annotated[int | None, typer.Option(min=0, help="Sends in any 60 seconds.")]
CountOfDay = Annotated[int | None, typer.Option(min=0, help="Sends a day (UTC).")]
CountOfStrangers = Annotated[
    int | None, typer.Option(min=0, help="Recipients a day (UTC) who never wrote to the inbox.")
]


@command(app, "set")
def set_up(
    context: CommandContext,
    per_minute: Count = None,
    per_day: CountOfDay = None,
    cold_per_day: CountOfStrangers = None,
    inbox_id: OfInbox = None,
    key_id: OfKey = None,
) -> None:
    """Set the budget of an inbox or a key; it replaces the old one."""
    from postroom_client.results import Budget

    if (per_minute, per_day, cold_per_day) == (None, None, None):
        raise typer.BadParameter("pass --per-minute, --per-day or --cold-per-day")
    context.show(_change(Budget(per_minute, per_day, cold_per_day), inbox_id, key_id), _show)


@command(app, "clear")
def clear(context: CommandContext, inbox_id: OfInbox = None, key_id: OfKey = None) -> None:
    """Remove a budget; the server's limits stay."""
    context.show(_change(None, inbox_id, key_id), _show)


def _change(budget: "Budget | None", inbox_id: str | None, key_id: str | None) -> "Call[Any]":
    from postroom_client.calls import calls

    match only_one(inbox_id, None, key_id):
        case ("inbox", target):
            return calls.update_inbox(target, limits=budget)
        case ("key", target):
            return calls.update_key(target, limits=budget)
        case _:
            raise typer.BadParameter("name an inbox or a key: --inbox-id or --key-id")


def _show(found: "Inbox | ApiKey") -> None:
    from postroom_client.results import Budget

    budget = found.limits or Budget()
    pairs = [
        ("key" if found.id.startswith("key_") else "inbox", found.id),
        ("per minute", _spell(budget.per_minute)),
        ("per day", _spell(budget.per_day)),
        ("new recipients per day", _spell(budget.cold_per_day)),
    ]
    output.print_human(output.record(pairs))


def _spell(count: int | None) -> str:
    return "the server's limit" if count is None else str(count)
