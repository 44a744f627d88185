"""The table of plain commands about calendars and their events."""

from dataclasses import replace

from postroom_client.cli.mailbox.events_shown import EVENT_COLUMNS, show_busy, show_event, show_slots
from postroom_client.cli.plain.rows import Plain

AGENDA = Plain(
    "agenda",
    "list_calendar_events",
    "List what takes place, by default in the next 31 days.",
    columns=EVENT_COLUMNS,
    empty="Nothing takes place then.",
    arguments=(),
    of_default_inbox=True,
)
CALENDARS = (
    AGENDA,
    replace(AGENDA, name="calendar-events list"),
    Plain(
        "calendars list",
        "list_calendars",
        "List calendars, the default one of each inbox first.",
        columns=("id", "inbox inbox_id", "name", "time_zone", "default is_default"),
    ),
    Plain(
        "calendars create",
        "create_calendar",
        "Create another calendar of an inbox.",
        fields=("id", "inbox inbox_id", "name", "time_zone", "source_url"),
        arguments=("name",),
    ),
    Plain(
        "calendars update",
        "update_calendar",
        "Change a calendar.",
        fields=("id", "inbox inbox_id", "name", "time_zone", "source_url", "source_error"),
    ),
    Plain(
        "calendars delete",
        "delete_calendar",
        "Delete a calendar with its events.",
        confirm="Delete {calendar_id} and all its events?",
        done="{calendar_id} is deleted.",
    ),
    Plain(
        "calendars link", "create_calendar_feed", "Create a private .ics link of a calendar.", fields=("url",)
    ),
    Plain(
        "calendars unlink",
        "delete_calendar_feed",
        "End the private link of a calendar.",
        done="The link has ended.",
    ),
    Plain("calendar-events get", "get_calendar_event", "Show an event.", show=show_event),
    Plain(
        "calendar-events delete",
        "cancel_calendar_event",
        "Cancel an event; attendees are notified by email.",
        show=show_event,
    ),
    Plain(
        "calendar-events respond",
        "respond_to_calendar_event",
        "Answer an invitation; the organizer is notified by email.",
        show=show_event,
    ),
    Plain("calendars busy", "get_free_busy", "Show when inboxes are busy.", show=show_busy),
    Plain(
        "calendars times", "find_times", "Find times at which all of these inboxes are free.", show=show_slots
    ),
)
