"""Show calendar events, busy times and slots."""

from typing import Any

from postroom_client.cli import output
from postroom_client.cli.context import CommandContext

DAY = "2026-11-20 "


def starts(item: Any) -> str:
    return output.moment_of(item.start)


def ends(item: Any) -> str:
    """Return when it ends, without the day if that is the day on which it starts."""
    start, end = starts(item), output.moment_of(item.end)
    return end[len(DAY) :] if len(end) > len(DAY) and end[: len(DAY)] == start[: len(DAY)] else end


EVENT_COLUMNS = ("id", ("start", starts), ("end", ends), "status", "summary", "location")


def attending(event: Any) -> str:
    return ", ".join(f"{each.address} ({each.participation_status})" for each in event.attendees)


EVENT_FIELDS = (
    *("id", "calendar calendar_id", ("start", starts), ("end", ends), "time_zone", "status", "own_response"),
    *("summary", "location", "organizer", ("attendees", attending), "url", "verdict", "thread thread_id"),
)


def show_event(context: CommandContext, event: Any) -> None:
    output.print_fields(EVENT_FIELDS, event)
    if event.description:
        output.print_text(event.description)


def show_busy(context: CommandContext, found: Any) -> None:
    for inbox_id, times in found.inboxes.items():
        output.print_text(inbox_id)
        output.print_table((("start", starts), ("end", ends), "status"), times)


def show_slots(context: CommandContext, found: Any) -> None:
    output.print_table((("start", starts), ("end", ends)), found.slots)
