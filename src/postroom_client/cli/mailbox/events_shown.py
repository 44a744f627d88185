"""Show calendar events, busy times and slots."""

from typing import Any

from postroom_client.cli import output
from postroom_client.cli.context import CommandContext

EVENT_COLUMNS = ("id", "start", "end", "status", "summary", "location")


def attending(event: Any) -> str:
    return ", ".join(f"{each.address} ({each.participation_status})" for each in event.attendees)


EVENT_FIELDS = (
    *("id", "calendar_id", "start", "end", "time_zone", "status", "own_response", "summary", "location"),
    *("organizer", ("attendees", attending), "url", "verdict", "thread_id"),
)


def show_event(context: CommandContext, event: Any) -> None:
    output.print_fields(EVENT_FIELDS, event)
    if event.description:
        output.print_text(event.description)


def starts(item: Any) -> str:
    return str(item.start.isoformat())


def ends(item: Any) -> str:
    return str(item.end.isoformat())


def show_busy(context: CommandContext, found: Any) -> None:
    for inbox_id, times in found.inboxes.items():
        output.print_text(inbox_id)
        output.print_table((("start", starts), ("end", ends), "status"), times)


def show_slots(context: CommandContext, found: Any) -> None:
    output.print_table((("start", starts), ("end", ends)), found.slots)
