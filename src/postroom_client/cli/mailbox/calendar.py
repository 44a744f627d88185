"""postroom calendar-events create and update, calendars import: what takes lists of people, or a file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.mailbox.events_shown import show_event

Scope = Literal["this", "following", "all"]


@command(GROUPS["calendar-events"], "create")
def add(
    context: CommandContext,
    summary: Annotated[str, typer.Argument(help="What it is about.", show_default=False)],
    start: Annotated[str, typer.Argument(help="2026-11-20T15:00:00, or a day.", show_default=False)],
    end: Annotated[str, typer.Argument(help="As start; of days the day after.", show_default=False)],
    inbox_id: InboxId = None,
    attendee: Annotated[list[str], typer.Option(help="An address to invite (repeatable).")] = [],  # noqa: B006
    time_zone: Annotated[str | None, typer.Option(help="A zone such as Europe/Berlin.")] = None,
    location: Annotated[str, typer.Option(help="Where it is.")] = "",
    description: Annotated[str, typer.Option(help="Text for attendees.")] = "",
    recurrence: Annotated[list[str], typer.Option(help="RRULE:FREQ=WEEKLY;COUNT=4 (repeatable).")] = [],  # noqa: B006
    allow_overlap: Annotated[bool, typer.Option("--allow-overlap", help="Also at a taken time.")] = False,
) -> None:
    """Create an event; attendees get an invitation by email."""
    from postroom_client.calls import calls

    asked = calls.create_calendar_event(
        summary,
        start,
        end,
        inbox_id=context.require_inbox_id(inbox_id),
        attendees=[{"address": each} for each in attendee],
        time_zone=time_zone,
        location=location,
        description=description,
        recurrence=recurrence,
        allow_overlap=allow_overlap,
    )
    context.show(asked, lambda event: show_event(context, event))


@command(GROUPS["calendar-events"], "update")
def change(
    context: CommandContext,
    calendar_event_id: Annotated[str, typer.Argument(help="The event, cev_….", show_default=False)],
    scope: Annotated[
        Scope, typer.Option(help="Of a series: this occurrence, it and the following, or all.")
    ] = "all",
    recurrence_id: Annotated[str | None, typer.Option(help="The occurrence, for this and following.")] = None,
    summary: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    start: Annotated[str | None, typer.Option(help="2026-11-20T15:00:00, or a day.")] = None,
    end: Annotated[str | None, typer.Option(help="As start; of days the day after.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="A zone such as Europe/Berlin.")] = None,
    location: Annotated[str | None, typer.Option(help="Where it is.")] = None,
    description: Annotated[str | None, typer.Option(help="Text for attendees.")] = None,
    recurrence: Annotated[
        list[str] | None, typer.Option(help="RRULE:FREQ=WEEKLY;COUNT=4 (repeatable).")
    ] = None,
    attendee: Annotated[
        list[str] | None, typer.Option(help="All who are invited from now on (repeatable).")
    ] = None,
    uninvite_all: Annotated[bool, typer.Option("--uninvite-all", help="Nobody is invited any more.")] = False,
    allow_overlap: Annotated[bool, typer.Option("--allow-overlap", help="Also at a taken time.")] = False,
) -> None:
    """Change an event; attendees are notified by email."""
    from postroom_client.calls import calls

    invited = None if not attendee and not uninvite_all else [{"address": each} for each in attendee or []]
    asked = calls.update_calendar_event(
        calendar_event_id,
        scope=scope,
        recurrence_id=recurrence_id,
        summary=summary,
        start=start,
        end=end,
        time_zone=time_zone,
        description=description,
        location=location,
        recurrence=recurrence or None,
        attendees=invited,
        allow_overlap=allow_overlap,
    )
    context.show(asked, lambda event: show_event(context, event))


@command(GROUPS["calendars"], "import")
def import_file(
    context: CommandContext,
    calendar_id: Annotated[str, typer.Argument(help="The calendar, cal_….", show_default=False)],
    file: Annotated[Path, typer.Argument(help="A calendar file (.ics).", show_default=False)],
) -> None:
    """Import a calendar file; nobody is notified by email."""
    from postroom_client.calls import calls

    asked = calls.import_calendar_file(calendar_id, file.read_text(errors="replace"))
    context.show(
        asked, lambda done: output.print_fields(("created", "changed", "unchanged", "removed"), done)
    )
