"""Calendars of inboxes: each inbox has a default one, and may have more."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.calendar_errors import CalendarLimitReached
from postroom.errors import no_such
from postroom.limits import CALENDARS_OF_AN_INBOX, EVENTS_OF_A_CALENDAR
from postroom.storage.database import (
    LOCK_ROWS,
    Row,
    Tx,
    all_of,
    count,
    insert_item,
    item_from_row,
    update,
)

DayTimes = list[Annotated[list[str], Meta(min_length=2, max_length=2)]]
WorkingHours = dict[str, DayTimes]
REMINDER_MINUTES = 10
KEPT_REMOVALS = 5_000  # of a calendar; a client that knows only an earlier version reads all of it again
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class InboxCalendar(Struct, frozen=True):
    id: str
    account_id: str
    pod_id: str
    inbox_id: str
    name: str
    time_zone: str
    working_hours: str
    is_default: int
    reminder_minutes: int | None
    feed_hash: str | None
    source_url: str | None
    source_due_at: int | None
    source_error: str | None
    version: int
    event_count: int
    created_at: int
    path_name: str | None = None
    properties: str = "{}"
    removals_since: int = 0

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id, self.inbox_id)

    @property
    def hours(self) -> WorkingHours:
        return msgspec.json.decode(self.working_hours, type=WorkingHours)

    @classmethod
    def from_row(cls, row: Row) -> "InboxCalendar":
        return item_from_row(cls, row)


def default_id(inbox_id: str) -> str:
    return f"{ids.CALENDAR}_{inbox_id.partition('_')[2]}"


def new(inbox: Scope, calendar_id: str, now: int) -> InboxCalendar:
    """Return a new calendar: no name of its own, UTC, nine to five on weekdays."""
    return InboxCalendar(
        id=calendar_id,
        account_id=inbox.account_id,
        pod_id=inbox.pod_id or "",
        inbox_id=inbox.inbox_id or "",
        name="Calendar",
        time_zone="UTC",
        working_hours=msgspec.json.encode({day: [["09:00", "17:00"]] for day in WEEKDAYS[:5]}).decode(),
        is_default=0,
        reminder_minutes=REMINDER_MINUTES,
        feed_hash=None,
        source_url=None,
        source_due_at=None,
        source_error=None,
        version=0,
        event_count=0,
        created_at=now,
    )


def add_default(tx: Tx, inbox: Scope, now: int) -> None:
    insert_item(tx, "calendars", replace(new(inbox, default_id(inbox.inbox_id or ""), now), is_default=1))


def add(tx: Tx, made: InboxCalendar) -> None:
    number = count(tx, "select count(*) as number from calendars where inbox_id = :id", id=made.inbox_id)
    if number >= CALENDARS_OF_AN_INBOX:
        raise CalendarLimitReached(
            f"An inbox has at most {CALENDARS_OF_AN_INBOX} calendars. Delete one first."
        )
    insert_item(tx, "calendars", made)


def find(tx: Tx, calendar_id: str) -> InboxCalendar | None:
    row = tx.one("select * from calendars where id = :id", id=calendar_id)
    return None if row is None else InboxCalendar.from_row(row)


def get(tx: Tx, scope: Scope, calendar_id: str) -> InboxCalendar:
    found = find(tx, calendar_id) if ids.is_id(ids.CALENDAR, calendar_id) else None
    if found is None or not scope.covers(found.account_id, found.pod_id, found.inbox_id):
        raise no_such("calendar")
    return found


def default_of(tx: Tx, inbox_id: str) -> InboxCalendar:
    found = find(tx, default_id(inbox_id))
    if found is None:
        raise no_such("inbox")
    return found


def list_of_inbox(tx: Tx, inbox_id: str) -> list[InboxCalendar]:
    rows = tx.all(
        "select * from calendars where inbox_id = :id order by is_default desc, created_at, id", id=inbox_id
    )
    return [InboxCalendar.from_row(row) for row in rows]


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[InboxCalendar], int]:
    """List the calendars, the default one first."""
    column, owner = scope.owner
    rows = tx.all(
        f"select * from calendars where {column} = :owner"
        " order by inbox_id, is_default desc, created_at, id limit :limit offset :offset",
        owner=owner,
        limit=limit,
        offset=offset,
    )
    total = count(tx, f"select count(*) as number from calendars where {column} = :owner", owner=owner)
    return [InboxCalendar.from_row(row) for row in rows], total


def put(tx: Tx, calendar: InboxCalendar) -> None:
    update(
        tx,
        "calendars",
        calendar.id,
        name=calendar.name,
        time_zone=calendar.time_zone,
        working_hours=calendar.working_hours,
        reminder_minutes=calendar.reminder_minutes,
        feed_hash=calendar.feed_hash,
        source_url=calendar.source_url,
        source_due_at=calendar.source_due_at,
        source_error=calendar.source_error,
        properties=calendar.properties,
    )


def find_of_path(tx: Tx, inbox_id: str, name: str) -> InboxCalendar | None:
    """Find by the name that a CalDAV client gave it, else by its id."""
    row = tx.one("select * from calendars where inbox_id = :id and path_name = :name", id=inbox_id, name=name)
    found = find(tx, name) if row is None and ids.is_id(ids.CALENDAR, name) else None
    if found is not None and (found.inbox_id != inbox_id or found.path_name is not None):
        return None
    return found if row is None else InboxCalendar.from_row(row)


def lock_defaults(tx: Tx, inbox_ids: set[str]) -> dict[str, InboxCalendar]:
    """Lock the default calendars, in the same order on all nodes.

    Nobody else books these inboxes before the commit.
    """
    wanted = sorted(map(default_id, inbox_ids))
    rows = all_of(tx, f"select * from calendars where :wanted order by id {LOCK_ROWS}", "id", wanted)
    return {row["inbox_id"]: InboxCalendar.from_row(row) for row in rows}


def next_version(tx: Tx, calendar_id: str, added: int = 0) -> int:
    """Counts a change of its events, and locks the calendar."""
    row = tx.one(
        "update calendars set version = version + 1, event_count = event_count + :added where id = :id"
        " returning version, event_count",
        id=calendar_id,
        added=added,
    )
    if row is None:
        raise no_such("calendar")
    if added > 0 and row["event_count"] > EVENTS_OF_A_CALENDAR:
        raise CalendarLimitReached(
            f"A calendar has at most {EVENTS_OF_A_CALENDAR} events. Delete some first."
        )
    return int(row["version"])


def forget_removals(tx: Tx, calendar_id: str) -> None:
    """Keeps the newest ones; a client with an earlier version than these gets an error."""
    row = tx.one(
        "select version from calendar_removals where calendar_id = :id order by version desc"
        " limit 1 offset :kept",
        id=calendar_id,
        kept=KEPT_REMOVALS,
    )
    if row is not None:
        tx.run(
            "delete from calendar_removals where calendar_id = :id and version <= :version",
            id=calendar_id,
            version=row["version"],
        )
        tx.run(
            "update calendars set removals_since = :version where id = :id",
            version=row["version"],
            id=calendar_id,
        )


def remove(tx: Tx, calendar: InboxCalendar) -> None:
    event_ids = "select id from calendar_events where calendar_id = :id"
    tx.run(f"delete from calendar_spans where event_id in ({event_ids})", id=calendar.id)
    for table in ("calendar_events", "calendar_removals"):
        tx.run(f"delete from {table} where calendar_id = :id", id=calendar.id)
    tx.run("delete from calendars where id = :id", id=calendar.id)


def remove_all_of_inbox(tx: Tx, inbox_id: str) -> None:
    """Remove all calendars of an inbox. Upkeep removes their events."""
    tx.run("delete from calendars where inbox_id = :id", id=inbox_id)


def find_by_feed(tx: Tx, feed_hash: str) -> InboxCalendar | None:
    row = tx.one("select * from calendars where feed_hash = :feed_hash", feed_hash=feed_hash)
    return None if row is None else InboxCalendar.from_row(row)


def is_source_due(tx: Tx, now: int) -> bool:
    return find_source_due(tx, now) is not None


def find_source_due(tx: Tx, now: int) -> InboxCalendar | None:
    row = tx.one(
        "select * from calendars where source_due_at <= :now order by source_due_at limit 1", now=now
    )
    return None if row is None else InboxCalendar.from_row(row)


def put_off_source(tx: Tx, calendar: InboxCalendar, due_at: int) -> bool:
    """Return False if another node took it first."""
    changed = tx.run(
        "update calendars set source_due_at = :due_at where id = :id and source_due_at = :known",
        due_at=due_at,
        id=calendar.id,
        known=calendar.source_due_at,
    )
    return changed == 1
