"""Calendars that a CalDAV client makes and describes: by the name that it chose, and with its properties."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from postroom.accounts.keys import Caller
from postroom.errors import BadRequest
from postroom.mailbox import inbox_calendars
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars import calendars
from postroom.operations.calendars.calendars import CalendarChange, NewCalendar
from postroom.operations.calendars.file_changes import FileRefused
from postroom.storage.database import Tx, update

PROPERTIES = 20
PROPERTY_CHARACTERS = 2_000


class Described(Struct, frozen=True):
    """What a client sets: the name and the zone of a calendar, and properties that only it reads.

    A property that is None is removed.
    """

    name: str | None = None
    time_zone: str | None = None
    properties: Mapping[str, str | None] = {}


def make(tx: Tx, caller: Caller, inbox_id: str, path_name: str, given: Described, now: int) -> InboxCalendar:
    """Create a calendar at the path that a CalDAV client chose, once."""
    inbox_calendars.lock_defaults(tx, {inbox_id})
    if inbox_calendars.find_of_path(tx, inbox_id, path_name) is not None:
        reason = "There is a calendar at this path already."
        raise FileRefused("resource-must-be-null", reason, status=405)
    body = NewCalendar(inbox_id, given.name or path_name[:100], given.time_zone)
    made = calendars.create_calendar(tx, caller, body, now)
    update(tx, "calendars", made.id, path_name=path_name)
    return describe(tx, caller, made.id, Described(properties=given.properties), now)


def describe(tx: Tx, caller: Caller, calendar_id: str, given: Described, now: int) -> InboxCalendar:
    """Change the properties of a calendar, all or none."""
    if given.name is not None or given.time_zone is not None:
        body = CalendarChange(name=given.name or UNSET, time_zone=given.time_zone or UNSET)
        calendars.change_calendar(tx, caller, calendar_id, body, now)
    calendar = inbox_calendars.get(tx, caller.scope, calendar_id)
    if not given.properties:
        return calendar
    kept: dict[str, str | None] = msgspec.json.decode(calendar.properties)
    kept = {name: value for name, value in (kept | dict(given.properties)).items() if value is not None}
    long = any(len(name) + len(value or "") > PROPERTY_CHARACTERS for name, value in kept.items())
    if len(kept) > PROPERTIES or long:
        raise BadRequest(
            f"A calendar keeps at most {PROPERTIES} properties of {PROPERTY_CHARACTERS} characters."
        )
    after = replace(calendar, properties=msgspec.json.encode(kept).decode())
    inbox_calendars.put(tx, after)
    return after
