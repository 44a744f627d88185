"""Events that a CalDAV client stores or removes as files (RFC 4791), with the emails of RFC 6638.

What a file says is compared with the event: only what changed is emailed, and only the organizer changes it.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom import limits
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.calendar_errors import EventChanged
from postroom.events import kinds
from postroom.events.calendar_notices import emit
from postroom.inward.calendar_changes import recurrence_id_in
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import calendar_events, calendar_files
from postroom.mailbox.calendars.calendar_events import CANCELLED, DECLINED, NEEDS_ACTION, CalendarEvent
from postroom.operations.calendars import imported, scheduling
from postroom.operations.calendars.event_fields import FIRST_YEAR, LAST_YEAR, recipients_of
from postroom.operations.calendars.scheduling import Asker, ChangeRequest, EventTarget
from postroom.outward import event_changes, own_events
from postroom.outward.event_changes import CalendarFileOfClient, EventChange
from postroom.outward.invitations import to_answer, to_answer_of_series
from postroom.outward.own_events import take_file_name
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of, parse_list, validate
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import LATEST, EventPart, EventTime, Series, occurrences, read_objects
from postroom_mail.writing.calendar_object import CalendarObject
from postroom_mail.writing.invitation import CANCEL, REQUEST
from postroom_mail.writing.series_file import EventMail, write_object

ANSWERS = ("accepted", "declined", "tentative")
MAX_SINGLE_ANSWERS = 20  # occurrences that one file answers: each is an email


class FileRefused(Exception):
    """`condition` names what RFC 4791 or 6638 requires; `taken_by` is the file that has the UID already."""

    def __init__(self, condition: str, message: str, taken_by: str = "", status: int = 403) -> None:
        super().__init__(message)
        self.condition, self.message = condition, message
        self.taken_by, self.status = taken_by, status


class ClientFile(Struct, frozen=True):
    """A file as a client stores it: its name, what it says, and its bytes."""

    name: str
    found: CalendarObject
    content: bytes

    @property
    def series(self) -> Series:
        return self.found.series

    @property
    def stored(self) -> CalendarFileOfClient:
        kept = self.found.kept
        return CalendarFileOfClient(self.name, msgspec.json.encode(kept).decode() if kept else None)


async def put_file(asker: Asker, target: EventTarget, file: ClientFile) -> None:
    """Store a new event, or change the one that has this file name (`target.event`)."""
    require_possible(file.series)
    known = target.event
    if known is None:
        same = await asker.resources.db.read(find_same, target.calendar.id, file.series.uid)
        if same is not None:
            reason = "Another file of this calendar has this UID. Change that one."
            raise FileRefused("no-uid-conflict", reason, calendar_files.name_of(same))
    elif known.uid_key != calendar_events.key_of(file.series.uid):
        raise FileRefused("no-uid-conflict", "The UID of an event does not change.", file.name)
    if known is not None and not known.is_own:
        await answer_by_file(asker, target, known, file)
    elif known is None and is_of_another(file.series, target):
        await store_invited(asker, target, file)
    else:
        await put_own(asker, target, file)


def find_same(tx: Tx, calendar_id: str, uid: str) -> CalendarEvent | None:
    found = calendar_events.find_of_calendar(tx, calendar_id, uid)
    return None if found is None or found.status == CANCELLED else found


def require_possible(series: Series) -> None:
    """Raise for what REST refuses too: years, attendees, texts."""
    for part in parts_of(series):
        if not FIRST_YEAR <= part.local.year <= LAST_YEAR:
            reason = f"DTSTART must be between the years {FIRST_YEAR} and {LAST_YEAR}."
            raise FileRefused("min-date-time", reason)
        if len(part.attendees) > limits.ATTENDEES:
            reason = f"An event has at most {limits.ATTENDEES} attendees."
            raise FileRefused("max-attendees-per-instance", reason)
        for each in part.attendees:
            require_address(each.address)


def require_address(address: str) -> None:
    try:
        validate(address)
    except ValueError:
        reason = f"ATTENDEE is not an email address: {address[:80]!r}. Use mailto:name@example.com."
        raise FileRefused("valid-calendar-data", reason) from None


def parts_of(series: Series) -> list[EventPart]:
    return [series.part, *(each.part for each in series.overrides)]


def organizer_of(series: Series) -> str:
    named = parse_list(series.part.organizer)
    return mailbox_of(named[0].address) if named else ""


def is_of_another(series: Series, target: EventTarget) -> bool:
    organizer = organizer_of(series)
    return bool(organizer) and organizer not in target.inbox.mailboxes


def request_of(target: EventTarget, file: ClientFile) -> ChangeRequest:
    """Return the request, the same for the same bytes and version: a repeated one sends nothing again."""
    version = 0 if target.event is None else target.event.version
    digest = hashlib.sha256(file.content).hexdigest()
    named = f"caldav {target.calendar.id} {file.series.uid} {version} {digest}"
    return ChangeRequest(
        hashlib.sha256(named.encode()).hexdigest(), digest.encode(), file.found.notified_by_client
    )


# Events of the inbox's own


async def put_own(asker: Asker, target: EventTarget, file: ClientFile) -> None:
    known, request, now = target.event, request_of(target, file), asker.resources.now()
    if known is not None and essentials(as_file(known.series)) == essentials(file.series):
        await asker.resources.db.write(keep_lines, asker.caller.scope, known, file.stored, now)
        return
    series = organized(file.series, target)
    kind = kinds.CALENDAR_CREATED if known is None else kinds.CALENDAR_CHANGED
    kind = kinds.CALENDAR_CANCELLED if series.part.status == CANCELLED and known is not None else kind
    change = EventChange(
        calendar_id=target.calendar.id,
        series=series,
        kind=kind,
        event_id="" if known is None else known.id,
        version=0 if known is None else known.version,
        file=file.stored,
    )
    changes = [change]
    if not is_over(series, now) or (known is not None and not is_over(known.series, now)):
        mail = EventMail(CANCEL if change.is_off else REQUEST, series)
        changes = [scheduling.with_mail(change, mail, target.inbox, request)]
        if known is not None:
            invited = replace(change, mail=mail)
            notice = scheduling.uninvited(invited, known.series, target.inbox, request)
            changes += [] if notice is None else [notice]
    await scheduling.carry_out(asker, target, changes, request)


def organized(series: Series, target: EventTarget) -> Series:
    """Return the event with this inbox as organizer, a new sequence and the known answers."""
    known = None if target.event is None else target.event.series
    sequence = series.part.sequence if known is None else max(known.part.sequence + 1, series.part.sequence)
    answers = {} if known is None else {each.address.lower(): each for each in known.part.attendees}

    def organize(part: EventPart) -> EventPart:
        invited = bool(recipients_of(part, target.inbox.own_addresses))
        attendees = tuple(
            answered(each, answers.get(each.address.lower()), target) for each in part.attendees
        )
        organizer = scheduling.organizer_of(target.inbox, part.organizer) if invited else part.organizer
        return replace(part, organizer=organizer, attendees=attendees, sequence=sequence)

    overrides = tuple(replace(each, part=organize(each.part)) for each in series.overrides)
    return replace(series, part=organize(series.part), overrides=overrides)


def answered(given: Attendee, known: Attendee | None, target: EventTarget) -> Attendee:
    """Return the attendee with the answer stored here: a client does not answer for others."""
    if mailbox_of(given.address) in target.inbox.own_addresses:
        return given
    status = NEEDS_ACTION if known is None else known.participation_status
    return replace_status(given, status)


def replace_status(attendee: Attendee, status: str) -> Attendee:
    return Attendee(attendee.address, attendee.name, status, attendee.role)


def as_file(series: Series) -> Series:
    """Return the event as read from a file of ours, so that formatting is not taken for a change."""
    written = write_object(series, datetime(2000, 1, 1, tzinfo=UTC), {})
    return read_objects(written).series[0]


def essentials(series: Series) -> tuple[Any, ...]:
    """Return all fields except sequence and answers, which clients set as they like."""
    overrides = sorted((each.recurrence_id, _essential(each.part)) for each in series.overrides)
    return _essential(series.part), sorted(series.lines), overrides, series.only


def _essential(part: EventPart) -> tuple[Any, ...]:
    people = sorted((each.address.lower(), each.role or "req-participant") for each in part.attendees)
    texts = (part.summary, part.description, part.location, part.url, part.status, part.transparency)
    return part.start, part.seconds, part.zone, texts, people


def is_over(series: Series, now: int) -> bool:
    """Return whether the event has ended: nobody is invited to one of the years that a client may upload."""
    return not occurrences(series, now, LATEST, 1)


def keep_lines(
    tx: Tx, scope: Scope, known: CalendarEvent, file: CalendarFileOfClient, now: int
) -> CalendarEvent:
    """Store lines that only the client needs, such as alarms, without notifying anyone."""
    event = calendar_events.get(tx, scope, known.id)
    if event.version != known.version:
        raise EventChanged("This event was changed meanwhile. Read it again, and repeat the change.")
    if (event.kept_lines, calendar_files.name_of(event)) == (file.kept_lines, file.name):
        return event
    calendar = inbox_calendars.get(tx, scope, event.calendar_id)
    event = replace(event, kept_lines=file.kept_lines, file_name=file.name)
    return calendar_events.put(tx, calendar, event, calendar_events.list_reserved(tx, event.id), now, False)


# Invitations


async def answer_by_file(asker: Asker, target: EventTarget, known: CalendarEvent, file: ClientFile) -> None:
    """Store an attendee's own answer (RFC 6638, section 3.2.2.1); of other changes keep only alarms."""
    baseline = as_file(known.series)
    if when(baseline, target) != when(file.series, target):
        reason = "Only the organizer changes this event. Change only your own answer."
        raise FileRefused("allowed-attendee-scheduling-object-change", reason)
    response, request = own_status(file.series.part, target), request_of(target, file)
    single = answers_to_one(target, known, file, response)
    if response in ANSWERS and response != known.own_response:
        known = await answer(asker, target, known, response, request)
    for at, said in single:
        known = await answer(asker, target, known, said, request, at)
    await asker.resources.db.write(keep_lines, asker.caller.scope, known, file.stored, asker.resources.now())


def answers_to_one(
    target: EventTarget, known: CalendarEvent, file: ClientFile, response: str
) -> list[tuple[EventTime, str]]:
    """Return the occurrences that the file answers anew, each with the answer; `response` is the series'."""
    found = {}
    for each in file.series.overrides:
        name = recurrence_id_in(known.series, replace(file.series, only=each.recurrence_id))
        said = own_status(each.part, target)
        stored = next((one.part for one in known.series.overrides if one.recurrence_id == name), None)
        before = response if stored is None else own_status(stored, target)
        if said in ANSWERS and said != before and (said != response or response == known.own_response):
            found[name] = said
    if len(found) > MAX_SINGLE_ANSWERS:
        reason = f"At most {MAX_SINGLE_ANSWERS} occurrences are answered at once. Answer the whole series."
        raise FileRefused("allowed-attendee-scheduling-object-change", reason)
    return [(require_occurrence(target, known, name), said) for name, said in found.items()]


def require_occurrence(target: EventTarget, known: CalendarEvent, name: str) -> EventTime:
    """Return the occurrence of the series that asks this inbox."""
    try:
        at = event_changes.find_occurrence(known.series, target.calendar, name)
    except (ValueError, OverflowError):
        at = None
    if at is None or not own_status(event_changes.part_at(known.series, at), target):
        reason = f"RECURRENCE-ID is no occurrence to which this inbox is invited: {name!r}."
        raise FileRefused("allowed-attendee-scheduling-object-change", reason)
    return at


def when(series: Series, target: EventTarget) -> tuple[Any, ...]:
    at = event_changes.moment_of(series, target.calendar, series.part.start)
    return at, series.part.seconds, sorted(series.lines)


def own_status(part: EventPart, target: EventTarget) -> str:
    return next((each.participation_status for each in own_attendees(part, target)), "")


def own_attendees(part: EventPart, target: EventTarget) -> list[Attendee]:
    return [each for each in part.attendees if mailbox_of(each.address) in target.inbox.mailboxes]


async def answer(
    asker: Asker,
    target: EventTarget,
    known: CalendarEvent,
    response: str,
    request: ChangeRequest,
    at: EventTime | None = None,
) -> CalendarEvent:
    """Send the answer to the organizer, by an ordinary send. Return the event with it."""
    now = asker.resources.now()
    if organizer_of(known.series) in request.notified_by_client:
        return await asker.resources.db.write(record_answer, asker, target, known, response, at)
    key = request.key or ""
    if at is not None:
        key = hashlib.sha256(f"{key} {at.recurrence_id}".encode()).hexdigest()
        order = to_answer_of_series(target.inbox, known, response, key, now, at)
    elif known.message_id is not None:
        given = (asker.resources, asker.caller.scope, known.message_id, response, "", key)
        order = await to_answer(*given)
    else:
        order = to_answer_of_series(target.inbox, known, response, key, now)
    await scheduling.accept(asker, [replace(order, traceparent=asker.traceparent)])
    return await asker.resources.db.read(calendar_events.get, asker.caller.scope, known.id)


def record_answer(
    tx: Tx, asker: Asker, target: EventTarget, known: CalendarEvent, response: str, at: EventTime | None
) -> CalendarEvent:
    """Record an answer that the client has sent to the organizer itself."""
    calendar, now = inbox_calendars.get(tx, asker.caller.scope, known.calendar_id), asker.resources.now()
    event = replace(known, own_response=response)
    if at is not None:
        own = own_attendees(event_changes.part_at(known.series, at), target)[0].address
        event = replace(
            known, series=own_events.with_answer_to_one(known.series, at.recurrence_id, own, response)
        )
    event = calendar_events.put(tx, calendar, event, (), now, False)
    span = own_events.span_of(event, calendar, "" if at is None else at.recurrence_id)
    actor = asker.caller.actor
    emit(tx, kinds.CALENDAR_ANSWERED, calendar, event, now, actor=actor, span=span, response=response)
    return event


async def store_invited(asker: Asker, target: EventTarget, file: ClientFile) -> None:
    """Store an invitation that came elsewhere or was not authenticated, and send the client's answer."""
    response = own_status(file.series.part, target)
    will_answer = response in ANSWERS and not is_over(file.series, asker.resources.now())
    event = await asker.resources.db.write(
        add_invited, asker, target, file, NEEDS_ACTION if will_answer else None
    )
    if will_answer:
        await answer(asker, replace(target, event=event), event, response, request_of(target, file))


def add_invited(
    tx: Tx, asker: Asker, target: EventTarget, file: ClientFile, response: str | None
) -> CalendarEvent:
    """Add the event as an import does: a file does not prove who invites."""
    calendar = inbox_calendars.get(tx, asker.caller.scope, target.calendar.id)
    now, stored = asker.resources.now(), file.stored
    take_file_name(tx, calendar, "", file.series.uid, stored, now)
    response = response or imported.own_response(file.series, target.inbox.mailboxes)
    event = replace(
        calendar_events.new(calendar, file.series, now),
        own_response=response,
        file_name=stored.name,
        kept_lines=stored.kept_lines,
    )
    event = calendar_events.put(tx, calendar, event, (), now, is_new=True)
    emit(tx, kinds.CALENDAR_CREATED, calendar, event, now, actor=asker.caller.actor)
    return event


# Removing


async def remove_file(asker: Asker, target: EventTarget, is_silent: bool = False) -> None:
    """Cancel the event for its organizer, decline it for an attendee (RFC 6638, section 3.2.2.3)."""
    event, now = target.event, asker.resources.now()
    assert event is not None
    digest = hashlib.sha256(f"caldav removed {event.id} {event.version}".encode()).hexdigest()
    request = ChangeRequest(digest, b"removed")
    if event.is_own:
        off = event_changes.cancel_all(event.series)
        change = EventChange(event.calendar_id, off.series, kinds.CALENDAR_CANCELLED, event.id, event.version)
        if not is_silent and not is_over(event.series, now):
            change = scheduling.with_mail(change, off.mail, target.inbox, request)
        await scheduling.carry_out(asker, target, [change], request)
        return
    is_asked = event.own_response != DECLINED and event.message_id is not None
    if is_asked and not is_silent and not is_over(event.series, now):
        event = await answer(asker, target, event, DECLINED, request)
    await asker.resources.db.write(drop, asker.caller.scope, asker.caller.actor, event, now)


def drop(tx: Tx, scope: Scope, actor: Actor, known: CalendarEvent, now: int) -> None:
    event = calendar_events.get(tx, scope, known.id)
    if event.version != known.version:
        raise EventChanged("This event was changed meanwhile. Read it again, and repeat the change.")
    calendar = inbox_calendars.get(tx, scope, event.calendar_id)
    calendar_events.remove(tx, event, now)
    emit(tx, kinds.CALENDAR_CANCELLED, calendar, replace(event, status=CANCELLED), now, actor=actor)
