"""postroom policy …: who may write to an inbox, and who may be written to."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.accounts.audit import Moment
from postroom_client.cli.command import Limit, Offset, OfInbox, OfPod, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Page, Policy, PolicyRule, PolicyStop

app = group("Who may write, and who may be written to: of the account, a pod or an inbox.")

Direction = Literal["inbound", "outbound"]
DirectionArgument = Annotated[Direction, typer.Argument(help="Mail in, or mail out.", show_default=False)]
Value = Annotated[
    str, typer.Argument(help="An address, a domain, or *.domain for the names below it.", show_default=False)
]


@command(app, "show")
def show(desk: Desk, inbox_id: OfInbox = None, pod_id: OfPod = None) -> None:
    """Show the policy."""
    from postroom_client.calls import calls

    desk.show(calls.get_policy(inbox_id=inbox_id, pod_id=pod_id), _show)


@command(app, "mode")
def mode(
    desk: Desk,
    direction: DirectionArgument,
    wanted: Annotated[
        Literal["none", "allowlist", "inherit"],
        typer.Argument(metavar="MODE", help="allowlist: only whom a rule allows.", show_default=False),
    ],
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
) -> None:
    """Say whether only those pass whom a rule allows."""
    from postroom_client.calls import calls

    desk.show(calls.set_policy_mode(direction, wanted, inbox_id=inbox_id, pod_id=pod_id), _show)


@command(app, "allow")
def allow(
    desk: Desk, direction: DirectionArgument, value: Value, inbox_id: OfInbox = None, pod_id: OfPod = None
) -> None:
    """Allow an address or a domain; it counts where the mode is allowlist."""
    from postroom_client.calls import calls

    desk.show(calls.add_policy_rule(direction, "allow", value, inbox_id=inbox_id, pod_id=pod_id), _show_rule)


@command(app, "block")
def block(
    desk: Desk, direction: DirectionArgument, value: Value, inbox_id: OfInbox = None, pod_id: OfPod = None
) -> None:
    """Block an address or a domain."""
    from postroom_client.calls import calls

    desk.show(calls.add_policy_rule(direction, "block", value, inbox_id=inbox_id, pod_id=pod_id), _show_rule)


@command(app, "remove")
def remove(
    desk: Desk,
    rule_id: Annotated[str, typer.Argument(help="Id of the rule.", show_default=False)],
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
) -> None:
    """Take a rule away."""
    from postroom_client.calls import calls

    desk.ask(calls.delete_policy_rule(rule_id, inbox_id=inbox_id, pod_id=pod_id))
    desk.done({"id": rule_id, "deleted": True}, f"{rule_id} is gone.")


@command(app, "stops")
def stops(
    desk: Desk,
    action: Annotated[
        Literal["blocked", "refused", "released"] | None, typer.Option(help="Only these.")
    ] = None,
    direction: Annotated[Direction | None, typer.Option(help="Only these.")] = None,
    since: Moment = None,
    until: Moment = None,
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """List what policies have stopped, newest first."""
    from postroom_client.calls import calls

    listing = calls.list_policy_audit(
        inbox_id=inbox_id,
        pod_id=pod_id,
        action=action,
        direction=direction,
        since=since,
        until=until,
        limit=limit,
        offset=offset,
    )
    desk.show(listing, _show_stops)


def _show(policy: "Policy") -> None:
    for name, direction in (("inbound", policy.inbound), ("outbound", policy.outbound)):
        output.print_human(output.record([(name, direction.mode)]))
        if direction.rules:
            rows = [(rule.id, rule.type, rule.value) for rule in direction.rules]
            output.print_human(output.table(("ID", "TYPE", "WHOM"), rows))


def _show_rule(rule: "PolicyRule") -> None:
    output.print_human(output.record([("id", rule.id), (rule.type, rule.value)]))


def _show_stops(page: "Page[PolicyStop]") -> None:
    if not page.data:
        output.note("No policy has stopped anything here.")
        return
    rows = [
        (
            output.ago(stop.at),
            stop.action,
            stop.direction,
            stop.address,
            stop.rule or "",
            stop.message_id or "",
        )
        for stop in page.data
    ]
    output.print_human(output.table(("WHEN", "WHAT", "DIRECTION", "WHO", "RULE", "MESSAGE"), rows))
    output.note_rest(page)
