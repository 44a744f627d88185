"""postroom usage."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import OfInbox, OfPod, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Usage


def usage(
    desk: Desk,
    first: Annotated[
        datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="First day, UTC.")
    ] = None,
    last: Annotated[
        datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Last day, UTC; today without it.")
    ] = None,
    group_by: Annotated[
        Literal["day", "inbox", "pod"], typer.Option(help="A line for each of these.")
    ] = "day",
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
) -> None:
    """What was received, sent and kept; without days, in the last 30."""
    from postroom_client.calls import calls

    asked = calls.get_usage(
        first=None if first is None else first.date(),
        last=None if last is None else last.date(),
        group_by=group_by,
        inbox_id=inbox_id,
        pod_id=pod_id,
    )
    desk.show(asked, lambda found: _show(found, group_by))


def add_to(app: typer.Typer) -> None:
    command(app, "usage")(usage)


def _show(found: "Usage", group_by: str) -> None:
    rows = [
        (
            group.group,
            *map(str, (group.received, group.sent, group.failed, group.bounced, group.complained)),
            *map(str, (group.held, group.blocked)),
            output.size(group.stored_bytes),
        )
        for group in found.data
    ]
    columns = (
        group_by.upper(),
        "RECEIVED",
        "SENT",
        "FAILED",
        "BOUNCED",
        "COMPLAINED",
        "HELD",
        "BLOCKED",
        "KEPT",
    )
    output.print_human(output.table(columns, rows))
