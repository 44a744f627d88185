"""postroom audit: every decision, with who, when and from where."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import AuditEntry, Page

Moment = Annotated[str | None, typer.Option(metavar="MOMENT", help="2026-11-14T10:05:00Z.")]


def audit(
    desk: Desk,
    since: Moment = None,
    until: Moment = None,
    actor: Annotated[str | None, typer.Option(help="Id of a key, a session or a reviewer.")] = None,
    action: Annotated[str | None, typer.Option(help="Such as key.created.")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> None:
    """List what was decided, by whom and from which address, newest first."""
    from postroom_client.calls import calls

    listing = calls.list_audit(
        since=since, until=until, actor=actor, action=action, limit=limit, offset=offset
    )
    desk.show(listing, _show_page)


def _show_page(page: "Page[AuditEntry]") -> None:
    if not page.data:
        output.note("Nothing was decided here.")
        return
    columns = ("WHEN", "WHO", "FROM", "WHAT", "ON")
    output.print_human(output.table(columns, [_row(entry) for entry in page.data]))
    output.note_rest(page)


def _row(entry: "AuditEntry") -> output.Row:
    who = "" if entry.actor is None else entry.actor.name or entry.actor.id
    what = entry.action if entry.count == 1 else f"{entry.action} ({entry.count} times)"
    return output.ago(entry.at), who, entry.address, what, entry.target


def add_to(app: typer.Typer) -> None:
    command(app, "audit")(audit)
