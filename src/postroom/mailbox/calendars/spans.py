"""When events take place: rows by time, so that an agenda and free time are found without expanding a series.

Of a long series the spans of about a year are stored. What lies outside is expanded when it is asked for.
"""

from collections.abc import Sequence

from msgspec import Struct

from postroom.clock import DAY, MINUTE
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.storage.database import Row, Tx
from postroom_mail.reading.series import EARLIEST, LATEST, EventTime, Series, occurrences

FREE, ASKED, MAYBE, WAITING, BUSY = range(5)  # how far a time is taken; from WAITING on nobody else gets it
TAKEN = WAITING
STORED = 400  # spans of a series
BEHIND, AHEAD = 60 * DAY, 400 * DAY
LONG = 2 * DAY  # longer ones are looked for apart, so that a range of starts finds all others
STEPS = 20_000  # of one request that expands series
EXPANDED_SERIES = 200
MOST = 5_000
COLUMNS = "event_id, starts_at, ends_at, recurrence_id, number, busy"


class EventSpan(Struct, frozen=True):
    event_id: str
    starts_at: int
    ends_at: int
    recurrence_id: str
    number: int
    busy: int

    @classmethod
    def from_row(cls, row: Row) -> "EventSpan":
        return cls(*(row[name] for name in cls.__struct_fields__))


class DueSpan(Struct, frozen=True):
    """A span of which the log gets an event."""

    span: EventSpan
    calendar_id: str
    tell_at: int


class Stored(Struct, frozen=True):
    """Which spans of a series are stored; `until` None: all later ones."""

    since: int
    until: int | None
    due_at: int | None


def expand(series: Series, calendar: InboxCalendar, now: int) -> tuple[list[EventTime], Stored]:
    """Return the occurrences to store. An event that does not repeat has one, whenever it is."""
    if not series.lines and not series.overrides:
        return occurrences(series, EARLIEST, LATEST, 1, calendar.time_zone), Stored(EARLIEST, None, None)
    since, until = now - BEHIND, now + AHEAD
    found = occurrences(series, since, until, STORED, calendar.time_zone)
    if len(found) == STORED:
        until = found[-1].starts_at
    return found, Stored(since, until, now + max(DAY, (until - now) // 4))


def busyness(series: Series, number: int, whole: int) -> int:
    """Return how busy one occurrence makes its owner, at most as much as the event as a whole."""
    part = series.part if number < 0 else series.overrides[number].part
    is_free = part.transparency == "transparent" or part.status == "cancelled"
    return FREE if is_free else whole


def put(
    tx: Tx,
    calendar: InboxCalendar,
    event_id: str,
    series: Series,
    busy: int,
    reserved: Sequence[str],
    found: Sequence[EventTime],
    now: int,
) -> None:
    """Stores them in place of earlier ones. `reserved` are inboxes of attendees whose time it takes."""
    rows = tx.all(
        "select starts_at, recurrence_id, tell_at from calendar_spans"
        " where event_id = :id and calendar_id <> ''",
        id=event_id,
    )
    notice_times = {(row["recurrence_id"], row["starts_at"]): row["tell_at"] for row in rows}
    tx.run("delete from calendar_spans where event_id = :id", id=event_id)
    new = []
    for each in found:
        taken = busyness(series, each.number, busy)
        known = (each.recurrence_id, each.starts_at)
        tell_at = notice_times[known] if known in notice_times else first_notice_at(each, calendar, now)
        new.append(_row(event_id, calendar.id, calendar.inbox_id, each, taken, tell_at))
        for inbox_id in reserved if taken >= TAKEN else ():
            new.append(_row(event_id, "", inbox_id, each, TAKEN, None))
    if new:
        tx.many(
            "insert into calendar_spans (event_id, calendar_id, inbox_id, starts_at, ends_at, recurrence_id,"
            " number, busy, is_long, tell_at) values :rows",
            new,
        )


def _row(
    event_id: str, calendar_id: str, inbox_id: str, each: EventTime, busy: int, tell_at: int | None
) -> tuple[object, ...]:
    is_long = int(each.ends_at - each.starts_at > LONG)
    when = (each.starts_at, each.ends_at, each.recurrence_id, each.number)
    return (event_id, calendar_id, inbox_id, *when, busy, is_long, tell_at)


def first_notice_at(each: EventTime, calendar: InboxCalendar, now: int) -> int | None:
    """Return when its start is announced; of one that has begun, its end; of one that is over, nothing."""
    if each.ends_at <= now:
        return None
    if calendar.reminder_minutes is None or each.starts_at <= now:
        return each.ends_at
    return each.starts_at - calendar.reminder_minutes * MINUTE


def list_due(tx: Tx, now: int, limit: int) -> list[DueSpan]:
    rows = tx.all(
        f"select {COLUMNS}, calendar_id, tell_at from calendar_spans where tell_at <= :now"
        " order by tell_at limit :limit",
        now=now,
        limit=limit,
    )
    return [DueSpan(EventSpan.from_row(row), row["calendar_id"], row["tell_at"]) for row in rows]


def set_next_notice(tx: Tx, due: DueSpan, tell_at: int | None) -> None:
    tx.run(
        "update calendar_spans set tell_at = :tell_at where event_id = :event_id and calendar_id <> ''"
        " and starts_at = :starts_at and recurrence_id = :recurrence_id",
        tell_at=tell_at,
        event_id=due.span.event_id,
        starts_at=due.span.starts_at,
        recurrence_id=due.span.recurrence_id,
    )


def remove(tx: Tx, event_id: str) -> None:
    tx.run("delete from calendar_spans where event_id = :id", id=event_id)


def list_of(tx: Tx, column: str, owner: str, since: int, until: int, besides: str = "") -> list[EventSpan]:
    """List the stored spans of a calendar (`calendar_id`) or inbox that overlap this time, in order.

    `starts_at + 0` makes long spans use their own index: by their start, nearly all would be read.
    """
    rows = tx.tuples(
        f"select {COLUMNS} from calendar_spans where {column} = :owner and starts_at >= :earliest"
        " and starts_at < :until and (ends_at > :since or starts_at >= :since) and is_long = 0"
        " order by starts_at, event_id limit :most",
        owner=owner,
        earliest=since - LONG,
        since=since,
        until=until,
        most=MOST,
    )
    long = tx.tuples(
        f"select {COLUMNS} from calendar_spans where {column} = :owner and is_long = 1"
        " and starts_at + 0 < :until and ends_at > :since order by starts_at limit :most",
        owner=owner,
        since=since,
        until=until,
        most=MOST,
    )
    found = sorted((*rows, *long), key=lambda row: (row[1], row[0])) if long else rows
    return [EventSpan(*row) for row in found if row[0] != besides]


def list_partly_stored(
    tx: Tx, calendar_id: str, since: int, until: int, most: int = EXPANDED_SERIES
) -> list[Row]:
    """List the series of a calendar whose spans in this time are not all stored, by the index of series."""
    return tx.all(
        "select * from calendar_events where calendar_id = :id and repeats = 1 and status <> 'cancelled'"
        " and starts_at + 0 < :until and (spans_since > :since or spans_until < :until)"
        " order by id limit :most",
        id=calendar_id,
        since=since,
        until=until,
        most=most,
    )
