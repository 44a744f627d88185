"""Events from a calendar file: imported once, or followed in a feed. They invite nobody."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.calendar_errors import InvalidCalendarFile
from postroom.events import kinds
from postroom.events.calendar_notices import emit
from postroom.limits import FEED_BYTES
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of, parse_list
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.reading.series import LATEST, CalendarObjects, Series, occurrences, read_objects

TOGETHER = 50  # events of one transaction
MOST_EMITTED = 50  # events of one file, or of one read of a feed, that the log records


class ImportedFile(Struct, rename="camel", frozen=True):
    content: Annotated[
        str, Meta(min_length=1, max_length=FEED_BYTES, description="A calendar file (.ics, RFC 5545).")
    ]


class Imported(Struct, frozen=True):
    """How many events are new, changed, as they were, and removed since the feed no longer has them."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0

    def plus(self, other: "Imported") -> "Imported":
        return Imported(*(getattr(self, each) + getattr(other, each) for each in self.__struct_fields__))


async def read_file(content: bytes) -> CalendarObjects:
    if len(content) > FEED_BYTES:
        raise InvalidCalendarFile(f"The calendar file is larger than {FEED_BYTES} bytes. Split it.")
    if b"BEGIN:VCALENDAR" not in content[:4096].upper():
        raise InvalidCalendarFile("This is not a calendar file: it does not begin with BEGIN:VCALENDAR.")
    found = await pools.READING.run(read_objects, content)
    if found.is_cut:
        raise InvalidCalendarFile("The calendar file has too many events. Split it.")
    return found


async def store(
    resources: Resources,
    scope: Scope,
    calendar_id: str,
    objects: CalendarObjects,
    follows: bool = False,
    actor: Actor | None = None,
) -> Imported:
    """Store events in small transactions. A repeated import changes nothing, so it continues after a kill.

    The log records what is new and still to come, but nothing of a feed that is read for the first time.
    """
    calendar = await resources.db.read(inbox_calendars.get, scope, calendar_id)
    log = ImportLog(0 if follows and not calendar.event_count else MOST_EMITTED, actor)
    done = Imported()
    for part in in_parts(objects.series):
        added, left = await resources.db.write(put_some, scope, calendar_id, part, log, resources.now())
        done, log = done.plus(added), replace(log, left=left)
    if follows:
        kept = frozenset(calendar_events.key_of(each.uid) for each in objects.series)
        removed = await resources.db.write(remove_others, scope, calendar_id, kept, log, resources.now())
        done = done.plus(Imported(removed=removed))
    return done


def in_parts(series: Sequence[Series]) -> Iterator[list[Series]]:
    rest = iter(series)
    while part := list(islice(rest, TOGETHER)):
        yield part


class ImportLog(Struct):
    """How many more changes the log records, and who made them; `steps` bounds what is expanded for it."""

    left: int
    actor: Actor | None = None
    steps: StepBudget = field(default_factory=StepBudget)

    def emit(self, tx: Tx, kind: str, calendar: InboxCalendar, event: CalendarEvent, now: int) -> None:
        if self.left and occurrences(event.series, now, LATEST, 1, calendar.time_zone, self.steps):
            emit(tx, kind, calendar, event, now, actor=self.actor)
            self.left -= 1


def put_some(
    tx: Tx, scope: Scope, calendar_id: str, found: list[Series], asked: ImportLog, now: int
) -> tuple[Imported, int]:
    """Return what was stored, and of how many more changes the log may emit."""
    calendar = inbox_calendars.get(tx, scope, calendar_id)
    inbox = inboxes.get(tx, scope, calendar.inbox_id)
    done, log = Imported(), ImportLog(asked.left, asked.actor)  # a transaction may run again
    for series in found:
        done = done.plus(put_one(tx, calendar, inbox.mailboxes, series, log, now))
    return done, log.left


def put_one(
    tx: Tx, calendar: InboxCalendar, own: Collection[str], series: Series, log: ImportLog, now: int
) -> Imported:
    """Store one event. Events made by email or by this server stay as they are: a file proves nothing."""
    known = calendar_events.find_of_calendar(tx, calendar.id, series.uid)
    if known is not None and (known.message_id is not None or known.series == series):
        return Imported(unchanged=1)
    event = known or calendar_events.new(calendar, series, now)
    event = replace(event, series=series, status=series.part.status, own_response=own_response(series, own))
    event = calendar_events.put(tx, calendar, event, (), now, known is None)
    kind = kinds.CALENDAR_CREATED if known is None else kinds.CALENDAR_CHANGED
    log.emit(tx, kind, calendar, event, now)
    return Imported(created=1) if known is None else Imported(changed=1)


def own_response(series: Series, mailboxes: Collection[str]) -> str | None:
    """Return the inbox's answer, or None for an event without attendees or organized by this inbox."""
    named = parse_list(series.part.organizer)
    organizer = mailbox_of(named[0].address) if named else ""
    if not series.part.attendees and not organizer:
        return None
    if organizer in mailboxes:
        return None
    own = next((each for each in series.part.attendees if mailbox_of(each.address) in mailboxes), None)
    known = ("accepted", "declined", "tentative", "needs-action")
    return own.participation_status if own is not None and own.participation_status in known else "accepted"


def remove_others(
    tx: Tx, scope: Scope, calendar_id: str, kept: frozenset[str], asked: ImportLog, now: int
) -> int:
    """Remove events that the feed no longer has."""
    calendar, log = inbox_calendars.get(tx, scope, calendar_id), ImportLog(asked.left, asked.actor)
    gone: list[CalendarEvent] = calendar_events.list_besides(tx, calendar_id, kept)
    for event in gone:
        calendar_events.remove(tx, event, now)
        off = replace(event, status=calendar_events.CANCELLED)
        log.emit(tx, kinds.CALENDAR_CANCELLED, calendar, off, now)
    return len(gone)
