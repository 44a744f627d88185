"""Events as files of a calendar, as CalDAV has them: their names, and what has changed since a version."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars.calendar_events import CANCELLED, CalendarEvent
from postroom.storage.database import Row, Tx, all_of
from postroom_mail.writing.series_file import Kept

ENDING = ".ics"


class FileVersion(Struct, frozen=True):
    """A file as a list has it; `is_there` is False for one that is removed."""

    name: str
    version: int
    updated_at: int
    event_id: str
    is_there: bool = True


def name_of(event: CalendarEvent) -> str:
    return event.file_name or f"{event.id}{ENDING}"


def kept_of(event: CalendarEvent) -> Kept:
    return (
        {} if event.kept_lines is None else msgspec.json.decode(event.kept_lines, type=dict[str, list[str]])
    )


def find(tx: Tx, calendar_id: str, name: str) -> CalendarEvent | None:
    """Return the event with this file name. A cancelled event has no file."""
    found = find_any(tx, calendar_id, name)
    return None if found is None or found.status == CANCELLED else found


def find_any(tx: Tx, calendar_id: str, name: str) -> CalendarEvent | None:
    found = find_all(tx, calendar_id, [name])
    return found[0] if found else None


def find_all(tx: Tx, calendar_id: str, names: Sequence[str]) -> list[CalendarEvent]:
    """Return those that are there, in any order, with the cancelled ones."""
    wanted = sorted(set(names))
    sql = "select * from calendar_events where calendar_id = :id and :wanted"
    by_name = all_of(tx, sql, "file_name", wanted, id=calendar_id)
    named = [name.removesuffix(ENDING) for name in wanted if name.endswith(ENDING)]
    of_ids = [each for each in named if ids.is_id(ids.CALENDAR_EVENT, each)]
    by_id = all_of(tx, f"{sql} and file_name is null", "id", of_ids, id=calendar_id)
    return [CalendarEvent.from_row(row) for row in (*by_name, *by_id)]


def list_all(tx: Tx, calendar_id: str, limit: int) -> list[FileVersion]:
    rows = tx.all(
        "select id, file_name, version, updated_at, status from calendar_events"
        " where calendar_id = :id and status <> 'cancelled' order by version limit :limit",
        id=calendar_id,
        limit=limit,
    )
    return [to_version(row) for row in rows]


def to_version(row: Row) -> FileVersion:
    name = row["file_name"] or f"{row['id']}{ENDING}"
    return FileVersion(name, row["version"], row["updated_at"], row["id"], row["status"] != CANCELLED)


def list_changes(tx: Tx, calendar_id: str, since: int, limit: int) -> list[FileVersion]:
    """Return what was changed or removed after a version, oldest change first.

    Each name once, as it is now.
    """
    asked = {"id": calendar_id, "since": since, "limit": limit}
    changed = tx.all(
        "select id, file_name, version, updated_at, status from calendar_events"
        " where calendar_id = :id and version > :since order by version limit :limit",
        **asked,
    )
    removed = tx.all(
        "select event_id as id, file_name, version, removed_at as updated_at, 'cancelled' as status"
        " from calendar_removals where calendar_id = :id and version > :since order by version limit :limit",
        **asked,
    )
    found = sorted(map(to_version, (*changed, *removed)), key=lambda each: each.version)[:limit]
    return found


def knows(tx: Tx, calendar_id: str, version: int) -> bool:
    """Return whether all that has changed since a version is known."""
    calendar = inbox_calendars.find(tx, calendar_id)
    return calendar is not None and calendar.removals_since <= version <= calendar.version


def release_name(tx: Tx, calendar_id: str, name: str, besides: str) -> None:
    """Release the file name of a cancelled event for a new one."""
    tx.run(
        "update calendar_events set file_name = null where calendar_id = :id and file_name = :name"
        " and status = 'cancelled' and id <> :besides",
        id=calendar_id,
        name=name,
        besides=besides,
    )
