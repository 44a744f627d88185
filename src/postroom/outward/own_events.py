"""Stores the events of an inbox's own, in the transaction of the email about them where there is one."""

from collections.abc import Sequence

from msgspec.structs import replace

from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.calendar_errors import EventChanged, SlotTaken
from postroom.events import kinds
from postroom.events.calendar_notices import emit
from postroom.inward.calendar_changes import with_status
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events, calendar_files, free_time
from postroom.mailbox.calendars.calendar_events import CANCELLED, DECLINED, CalendarEvent
from postroom.mailbox.calendars.spans import EventSpan
from postroom.mailbox.documents import Document
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.outward.event_changes import CalendarFileOfClient, EventChange
from postroom.outward.send_stages import Ready
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import EventPart, Override, Series, read_objects, to_moment, with_override
from postroom_mail.writing.invitation import CANCEL, REQUEST
from postroom_mail.writing.invitation_answer import CalendarAnswer
from postroom_mail.writing.series_file import part_of

PARTICIPANTS = 100  # attendees whose time is looked at


def carry_out(
    tx: Tx, scope: Scope, actor: Actor, change: EventChange, now: int, document: Document | None = None
) -> CalendarEvent:
    """Makes, changes or cancels an event; with an email it waits until that has left."""
    calendar = inbox_calendars.get(tx, scope, change.calendar_id)
    before = find_unchanged(tx, scope, change)
    if change.file is not None:
        take_file_name(tx, calendar, change.event_id, change.series.uid, change.file, now)
    elif before is None and document is None:
        made = calendar_events.find_of_calendar(tx, calendar.id, change.series.uid)
        if made is not None:  # by the same request, sent twice
            return made
    event = replace(before or calendar_events.new(calendar, change.series, now), series=change.series)
    status = CANCELLED if is_all_off(change) else change.series.part.status
    event = replace(event, status=status, seen_by=seen_by(actor))
    if change.file is not None:
        event = replace(event, file_name=change.file.name, kept_lines=change.file.kept_lines)
    if document is not None:
        event = waiting(event, before, document)
    participants = find_participants(tx, scope, calendar, change.series)
    if change.is_exclusive and status != CANCELLED:
        require_free(tx, calendar, participants, event)
    others = sorted(participants - {calendar.inbox_id})
    event = calendar_events.put(tx, calendar, event, others, now, before is None)
    emit(tx, change.kind, calendar, event, now, actor=actor)
    return event


def carry_out_all(
    tx: Tx, scope: Scope, actor: Actor, changes: Sequence[EventChange], now: int
) -> list[CalendarEvent]:
    return [carry_out(tx, scope, actor, each, now) for each in changes]


def take_file_name(
    tx: Tx, calendar: InboxCalendar, event_id: str, uid: str, file: CalendarFileOfClient, now: int
) -> None:
    """Take a file name. If two clients store a new event at once, the second gets an error."""
    inbox_calendars.lock_defaults(tx, {calendar.inbox_id})
    calendar_files.release_name(tx, calendar.id, file.name, besides=event_id)
    same = calendar_events.find_of_calendar(tx, calendar.id, uid)
    if same is not None and same.status == CANCELLED and same.id != event_id:
        calendar_events.remove(tx, same, now)
        same = None
    named = calendar_files.find(tx, calendar.id, file.name)
    if any(each is not None and each.id != event_id for each in (named, same)):
        raise EventChanged("Another event has this name or this UID. Read the calendar again.")


def waiting(event: CalendarEvent, before: CalendarEvent | None, document: Document) -> CalendarEvent:
    """Return the event with its state before the first of the changes that have not left yet."""
    first = None if before is None else before.before if before.is_waiting else before.series
    return replace(
        event, message_id=document.id, thread_id=document.thread_id, waits_for=document.id, before=first
    )


def is_all_off(change: EventChange) -> bool:
    return change.is_off and change.series.part.status == CANCELLED


def seen_by(actor: Actor) -> str | None:
    """Return the person who made the change and so has seen it; an agent's change waits for one to look."""
    return actor.id if actor.type == "user" else None


def find_unchanged(tx: Tx, scope: Scope, change: EventChange) -> CalendarEvent | None:
    if not change.event_id:
        return None
    found = calendar_events.get(tx, scope, change.event_id)
    if found.version != change.version:
        raise EventChanged("This event was changed meanwhile. Read it again, and repeat the change.")
    return found


def find_participants(tx: Tx, scope: Scope, calendar: InboxCalendar, series: Series) -> set[str]:
    """Return the inbox itself, and the attendees with an inbox in scope that have not declined."""
    found = {calendar.inbox_id}
    for attendee in series.part.attendees[:PARTICIPANTS]:
        inbox = inboxes.find_by_address(tx, mailbox_of(attendee.address))
        if inbox is not None and inboxes.is_within(inbox, scope) and not has_declined(attendee):
            found.add(inbox.id)
    return found


def has_declined(attendee: Attendee) -> bool:
    return attendee.participation_status == DECLINED


def require_free(tx: Tx, calendar: InboxCalendar, participants: set[str], event: CalendarEvent) -> None:
    """Require the time to be free.

    All participants stay locked until the commit: of two that take a time at once, one gets it.
    """
    inbox_calendars.lock_defaults(tx, participants)
    for inbox_id in sorted(participants):
        taken = free_time.find_conflict(tx, inbox_id, calendar, event.series, event.id)
        if taken is not None:
            raise SlotTaken(
                "This time is taken. Choose another (POST /v1/find-times), or set allowOverlap.",
                event=taken.event_id,
                inbox=inbox_id,
            )


def record_sent(tx: Tx, ready: Ready) -> None:
    """Record what an accepted email changes in its sender's own calendar."""
    submission, document = ready.submission, ready.document
    scope, actor, now = submission.caller.scope, submission.caller.actor, submission.now
    change = submission.order.calendar
    if isinstance(change, EventChange):
        if not change.is_notice:
            carry_out(tx, scope, actor, change, now, document)
        carry_out_all(tx, scope, actor, change.also, now)
    elif isinstance(change, CalendarAnswer):
        record_answer(tx, submission.around.inbox, actor, change, document, now)
    elif submission.composed.draft.calendar is not None:
        written = submission.composed.draft.calendar
        found = change_written(tx, ready.inbox_id, written.method, written.content)
        if found is not None:
            carry_out(tx, submission.around.inbox.scope, actor, found, now, document)


def change_written(tx: Tx, inbox_id: str, method: str, content: bytes) -> EventChange | None:
    """Return the change that an invitation of a plain send makes; None if it cancels an unknown event."""
    series = next(iter(read_objects(content).series), None)
    if series is None or method not in (REQUEST, CANCEL):
        return None
    known = calendar_events.find_of_inbox(tx, inbox_id, series.uid)
    if known is not None and not known.is_own:
        return None
    if method == CANCEL:
        off = None if known is None else replace(known.series.part, status=CANCELLED)
        series = series if known is None or off is None else replace(known.series, part=off)
    kind = {CANCEL: kinds.CALENDAR_CANCELLED}.get(
        method, kinds.CALENDAR_CREATED if known is None else kinds.CALENDAR_CHANGED
    )
    if known is None:
        return None if method == CANCEL else EventChange(inbox_calendars.default_id(inbox_id), series, kind)
    return EventChange(known.calendar_id, series, kind, known.id, known.version)


def record_answer(
    tx: Tx, inbox: Inbox, actor: Actor, answer: CalendarAnswer, document: Document, now: int
) -> None:
    """Record the inbox's answer to an invitation, also to one that was in no calendar yet."""
    objects = read_objects(answer.invited.raw)
    series = next((each for each in objects.series), None)
    if series is None:
        return
    known = calendar_events.find_of_inbox(tx, inbox.id, series.uid)
    calendar = (
        inbox_calendars.default_of(tx, inbox.id)
        if known is None
        else inbox_calendars.get(tx, inbox.scope, known.calendar_id)
    )
    event = known or calendar_events.new(calendar, series, now)
    response = answer.status.lower()
    only = "" if known is None else answer.only
    if only:
        answered = with_answer_to_one(event.series, only, answer.attendee, response)
        event = replace(event, series=answered, seen_by=seen_by(actor))
    else:
        answered = with_answer(event.series, answer.attendee, response)
        event = replace(event, series=answered, own_response=response, seen_by=seen_by(actor))
    event = replace(event, thread_id=event.thread_id or document.thread_id)
    event = calendar_events.put(tx, calendar, event, (), now, known is None)
    emit(
        tx,
        kinds.CALENDAR_ANSWERED,
        calendar,
        event,
        now,
        actor=actor,
        span=span_of(event, calendar, only),
        attendee=mailbox_of(answer.attendee),
        response=response,
    )


def with_answer(series: Series, address: str, response: str) -> Series:
    """Return the series with an attendee's answer, also in each exception that names the attendee."""
    part, address = series.part, mailbox_of(address)
    answered = replace(series, part=replace(part, attendees=with_status(part.attendees, address, response)))
    for each in series.overrides:
        changed = answered_part(each.part, address, response, series.part.transparency)
        answered = with_override(answered, replace(each, part=changed))
    return answered


def with_answer_to_one(series: Series, recurrence_id: str, address: str, response: str) -> Series:
    """Return the series with an attendee's answer to one occurrence, which becomes an exception."""
    known = part_of(series, recurrence_id)
    part = known if known is not series.part else replace(known, start=recurrence_id)
    changed = answered_part(part, mailbox_of(address), response, series.part.transparency)
    return with_override(series, Override(recurrence_id, changed))


def answered_part(part: EventPart, address: str, response: str, otherwise: str) -> EventPart:
    """Return the part with the answer.

    A declined exception takes no time; accepted later, it takes it as the others do (`otherwise`).
    """
    own = [each.participation_status for each in part.attendees if mailbox_of(each.address) == address]
    transparency = otherwise if DECLINED in own else part.transparency
    transparency = "transparent" if own and response == DECLINED else transparency
    return replace(part, attendees=with_status(part.attendees, address, response), transparency=transparency)


def span_of(event: CalendarEvent, calendar: InboxCalendar, recurrence_id: str) -> EventSpan | None:
    """Return when the exception of this name takes place; None for the series."""
    for number, each in enumerate(event.series.overrides):
        if recurrence_id and each.recurrence_id == recurrence_id:
            part = each.part
            start = to_moment(part.local, part.zone, event.series.zone_rules, calendar.time_zone)
            return EventSpan(event.id, start, start + part.seconds * 1000, recurrence_id, number, event.busy)
    return None
