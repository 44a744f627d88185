"""Events of calendars: a series, or a single appointment, with what the inbox answered."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import spans
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.storage.database import LOCK_ROWS, Row, Tx, all_of, count, insert, item_from_row
from postroom_mail.reading.series import Series, to_moment

CONFIRMED, TENTATIVE, CANCELLED = "confirmed", "tentative", "cancelled"
NEEDS_ACTION, ACCEPTED, DECLINED = "needs-action", "accepted", "declined"
LONGEST_KEY = 255
PROPOSALS = 20
FEED_EVENTS = 2_000
FORGET_EVERY = 100  # changes of a calendar


class Proposal(Struct, rename="camel", frozen=True):
    """Another time that an attendee proposes (RFC 5546, section 3.2.7)."""

    address: str
    start: str
    end: str
    comment: str
    message_id: str


class CalendarEvent(Struct, frozen=True):
    """`own_response` is None for an event of the inbox's own. `before` is what a waiting change replaced."""

    id: str
    account_id: str
    pod_id: str
    inbox_id: str
    calendar_id: str
    uid_key: str
    series: Series
    status: str
    own_response: str | None = None
    message_id: str | None = None
    thread_id: str | None = None
    verdict: str | None = None
    proposals: tuple[Proposal, ...] = ()
    waits_for: str | None = None
    before: Series | None = None
    seen_by: str | None = None
    file_name: str | None = None
    kept_lines: str | None = None
    version: int = 0
    created_at: int = 0
    updated_at: int = 0

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id, self.inbox_id)

    @property
    def is_own(self) -> bool:
        return self.own_response is None

    @property
    def is_waiting(self) -> bool:
        return self.waits_for is not None

    @property
    def busy(self) -> int:
        """Return how far it takes the inbox's time."""
        if self.status == CANCELLED or self.own_response == DECLINED:
            return spans.FREE
        if self.is_waiting:
            return spans.WAITING
        if self.own_response == NEEDS_ACTION:
            return spans.ASKED
        return spans.MAYBE if TENTATIVE in (self.own_response, self.status) else spans.BUSY

    @classmethod
    def from_row(cls, row: Row) -> "CalendarEvent":
        return item_from_row(
            cls,
            row,
            series=msgspec.json.decode(row["content"], type=Series),
            before=None if row["before"] is None else msgspec.json.decode(row["before"], type=Series),
            proposals=msgspec.json.decode(row["proposals"], type=tuple[Proposal, ...]),
        )


def new(calendar: InboxCalendar, series: Series, now: int) -> CalendarEvent:
    return CalendarEvent(
        id=ids.new(ids.CALENDAR_EVENT, now),
        account_id=calendar.account_id,
        pod_id=calendar.pod_id,
        inbox_id=calendar.inbox_id,
        calendar_id=calendar.id,
        uid_key=key_of(series.uid),
        series=series,
        status=series.part.status,
        created_at=now,
    )


def key_of(uid: str) -> str:
    """Return the key of a uid: a hash if it is long, since a database cannot index texts of any length."""
    encoded = uid.encode(errors="replace")
    return uid if len(encoded) <= LONGEST_KEY else f"sha256:{hashlib.sha256(encoded).hexdigest()}"


def put(
    tx: Tx, calendar: InboxCalendar, event: CalendarEvent, reserved: Sequence[str], now: int, is_new: bool
) -> CalendarEvent:
    """Stores an event, new or changed, with the times when it takes place."""
    found, stored = spans.expand(event.series, calendar, now)
    event = replace(event, version=inbox_calendars.next_version(tx, calendar.id, int(is_new)), updated_at=now)
    series = event.series
    row: dict[str, Any] = {
        name: getattr(event, name)
        for name in CalendarEvent.__struct_fields__
        if name not in ("series", "before", "proposals")
    }
    row |= {
        "content": _written(series),
        "before": None if event.before is None else _written(event.before),
        "proposals": msgspec.json.encode(event.proposals).decode(),
        "starts_at": to_moment(series.part.local, series.part.zone, series.zone_rules, calendar.time_zone),
        "repeats": int(bool(series.lines or series.overrides)),
        "spans_since": stored.since,
        "spans_until": stored.until,
        "spans_due_at": None if event.status == CANCELLED else stored.due_at,
    }
    if is_new:
        insert(tx, "calendar_events", **row)
    else:
        columns = ", ".join(f"{name} = :{name}" for name in row if name != "id")
        tx.run(f"update calendar_events set {columns} where id = :id", **row)
    spans.put(tx, calendar, event.id, series, event.busy, reserved, found if is_shown(event) else (), now)
    return event


def put_spans(
    tx: Tx, calendar: InboxCalendar, event: CalendarEvent, reserved: Sequence[str], now: int
) -> None:
    """Stores the times of a series that have come nearer."""
    found, stored = spans.expand(event.series, calendar, now)
    tx.run(
        "update calendar_events set spans_since = :since, spans_until = :until, spans_due_at = :due_at"
        " where id = :id",
        since=stored.since,
        until=stored.until,
        due_at=stored.due_at if is_shown(event) else None,
        id=event.id,
    )
    shown = found if is_shown(event) else ()
    spans.put(tx, calendar, event.id, event.series, event.busy, reserved, shown, now)


def is_shown(event: CalendarEvent) -> bool:
    """Return whether an agenda has it: cancelled and declined events are only found by their id."""
    return event.status != CANCELLED and event.own_response != DECLINED


def _written(series: Series) -> str:
    return msgspec.json.encode(series).decode()


def find(tx: Tx, event_id: str) -> CalendarEvent | None:
    row = tx.one("select * from calendar_events where id = :id", id=event_id)
    return None if row is None else CalendarEvent.from_row(row)


def get(tx: Tx, scope: Scope, event_id: str) -> CalendarEvent:
    found = find(tx, event_id) if ids.is_id(ids.CALENDAR_EVENT, event_id) else None
    if found is None or not scope.covers(found.account_id, found.pod_id, found.inbox_id):
        raise no_such("calendar event")
    return found


def find_of_inbox(tx: Tx, inbox_id: str, uid: str) -> CalendarEvent | None:
    """Return the event with this uid, locked so that two changes to it follow each other."""
    row = tx.one(
        "select * from calendar_events where inbox_id = :inbox_id and uid_key = :uid_key"
        f" order by created_at, id limit 1 {LOCK_ROWS}",
        inbox_id=inbox_id,
        uid_key=key_of(uid),
    )
    return None if row is None else CalendarEvent.from_row(row)


def find_of_calendar(tx: Tx, calendar_id: str, uid: str) -> CalendarEvent | None:
    row = tx.one(
        "select * from calendar_events where calendar_id = :calendar_id and uid_key = :uid_key",
        calendar_id=calendar_id,
        uid_key=key_of(uid),
    )
    return None if row is None else CalendarEvent.from_row(row)


def list_by_ids(tx: Tx, event_ids: Sequence[str]) -> dict[str, CalendarEvent]:
    rows = all_of(tx, "select * from calendar_events where :wanted", "id", sorted(set(event_ids)))
    return {row["id"]: CalendarEvent.from_row(row) for row in rows}


def list_of_thread(tx: Tx, thread_id: str) -> list[CalendarEvent]:
    rows = tx.all(
        "select * from calendar_events where thread_id = :id order by created_at, id limit 5", id=thread_id
    )
    return [CalendarEvent.from_row(row) for row in rows]


def list_of_calendar(tx: Tx, calendar_id: str, limit: int, offset: int) -> tuple[list[CalendarEvent], int]:
    """List the events that take place, by their first start."""
    rows = tx.all(
        "select * from calendar_events where calendar_id = :id and status <> 'cancelled'"
        " order by starts_at, id limit :limit offset :offset",
        id=calendar_id,
        limit=limit,
        offset=offset,
    )
    total = count(
        tx,
        "select count(*) as number from calendar_events where calendar_id = :id and status <> 'cancelled'",
        id=calendar_id,
    )
    return [CalendarEvent.from_row(row) for row in rows], total


def list_waiting(tx: Tx, message_id: str) -> list[CalendarEvent]:
    rows = tx.all("select * from calendar_events where waits_for = :id", id=message_id)
    return [CalendarEvent.from_row(row) for row in rows]


def list_reserved(tx: Tx, event_id: str) -> list[str]:
    """List the inboxes of attendees whose time the event takes."""
    rows = tx.all(
        "select distinct inbox_id from calendar_spans where event_id = :id and calendar_id = ''", id=event_id
    )
    return [row["inbox_id"] for row in rows]


def find_reserved(tx: Tx, event_id: str, address: str) -> str | None:
    row = tx.one(
        "select inbox_id from calendar_spans where event_id = :id and inbox_id in"
        " (select id from inboxes where address = :address"
        " union all select inbox_id from aliases where address = :address) limit 1",
        address=address,
        id=event_id,
    )
    return None if row is None else str(row["inbox_id"])


def list_settled(tx: Tx, limit: int) -> list[CalendarEvent]:
    """List the events whose email has left, has failed or is deleted."""
    rows = tx.all(
        "select calendar_events.* from calendar_events left join messages"
        " on messages.id = calendar_events.waits_for where calendar_events.waits_for is not null"
        " and (messages.status is null or messages.status <> 'pending') limit :limit",
        limit=limit,
    )
    return [CalendarEvent.from_row(row) for row in rows]


def list_due(tx: Tx, now: int, limit: int) -> list[CalendarEvent]:
    """List the series of which more occurrences have to be stored."""
    rows = tx.all(
        "select * from calendar_events where spans_due_at <= :now order by spans_due_at limit :limit",
        now=now,
        limit=limit,
    )
    return [CalendarEvent.from_row(row) for row in rows]


def list_besides(tx: Tx, calendar_id: str, kept: frozenset[str]) -> list[CalendarEvent]:
    """List the events of a calendar that no email created, except those whose uids have these keys."""
    rows = tx.all(
        "select id, uid_key from calendar_events where calendar_id = :id and message_id is null",
        id=calendar_id,
    )
    gone = [row["id"] for row in rows if row["uid_key"] not in kept]
    return [event for each in gone if (event := find(tx, each)) is not None]


def list_newest_series(tx: Tx, calendar_id: str) -> list[Series]:
    """Return what a feed has: the events that begin last, and all series."""
    rows = tx.all(
        "select content from calendar_events where calendar_id = :id"
        " order by repeats desc, starts_at desc limit :limit",
        id=calendar_id,
        limit=FEED_EVENTS,
    )
    return [msgspec.json.decode(row["content"], type=Series) for row in rows]


def mark_seen(tx: Tx, scope: Scope, event_ids: Sequence[str], person: str) -> None:
    for event_id in event_ids:
        event = get(tx, scope, event_id)
        tx.run("update calendar_events set seen_by = :person where id = :id", person=person, id=event.id)


def remove(tx: Tx, event: CalendarEvent, now: int) -> None:
    spans.remove(tx, event.id)
    tx.run("delete from calendar_events where id = :id", id=event.id)
    version = inbox_calendars.next_version(tx, event.calendar_id, -1)
    insert(
        tx,
        "calendar_removals",
        inbox_id=event.inbox_id,
        calendar_id=event.calendar_id,
        version=version,
        uid_key=event.uid_key,
        event_id=event.id,
        file_name=event.file_name,
        removed_at=now,
    )
    if version % FORGET_EVERY == 0:
        inbox_calendars.forget_removals(tx, event.calendar_id)
