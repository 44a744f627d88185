"""Calendar events over REST: create, change, cancel and answer them, and send the emails for it."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from postroom import limits
from postroom.calendar_errors import EventChanged, NotOrganizer
from postroom.errors import BadRequest, NotAnInvitation
from postroom.events import kinds
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.calendar_json import ShownCalendarEvent, show_event
from postroom.operations.calendars import scheduling
from postroom.operations.calendars.event_fields import (
    CalendarEventChange,
    NewCalendarEvent,
    changed_fields,
    read_recurrence,
    to_series,
)
from postroom.operations.calendars.scheduling import Asker, ChangeRequest, EventTarget
from postroom.outward import event_changes
from postroom.outward.event_changes import EventChange
from postroom.outward.invitations import to_answer
from postroom.queue import idempotency
from postroom.web.call import Call
from postroom.web.requests.request_body import header
from postroom_mail.reading.series import EventTime
from postroom_mail.writing.series_file import EventMail

ATTEMPTS = 3
Scoped = Annotated[
    Literal["this", "following", "all"],
    Meta(description="Of a series: the occurrence recurrenceId, that and all later ones, or all."),
]


class ChangeQuery(Struct, rename="camel", frozen=True):
    scope: Scoped = "all"
    recurrence_id: (
        Annotated[str, Meta(max_length=40, description="The occurrence, for this and following.")] | None
    ) = None


class Response(Struct, frozen=True):
    response: Annotated[
        Literal["accepted", "declined", "tentative"], Meta(description="The answer to the organizer.")
    ]
    comment: Annotated[
        str, Meta(max_length=limits.CALENDAR_COMMENT_CHARACTERS, description="Message to the organizer.")
    ] = ""


def find_key(call: Call) -> str | None:
    """Return the Idempotency-Key, or None: only changes sent to attendees need one."""
    given = header(call.request, b"idempotency-key")
    return idempotency.require_key(given) if given else None


def asker_of(call: Call) -> Asker:
    return Asker(call.resources, call.decider, call.origin.traceparent, call.mark_replay)


async def create_calendar_event(call: Call, body: NewCalendarEvent) -> ShownCalendarEvent:
    """Create a calendar event; attendees get an invitation by email"""
    key = find_key(call)
    named = (body.calendar_id, body.inbox_id)
    target = await call.resources.db.read(scheduling.find_calendar, call.scope, *named)
    scheduling.require_may(call.caller, bool(body.attendees))
    uid = scheduling.new_uid(call.caller, target, key, call.now())
    series = to_series(body, target.calendar, scheduling.organizer_of(target.inbox), uid)
    change = EventChange(
        calendar_id=target.calendar.id,
        series=series,
        kind=kinds.CALENDAR_CREATED,
        is_exclusive=not body.allow_overlap and body.transparency == "opaque",
        mail=EventMail("REQUEST", series) if body.attendees else None,
    )
    known = await call.resources.db.read(calendar_events.find_of_calendar, target.calendar.id, uid)
    if known is not None and not body.attendees:
        return show_event(known, target.calendar)
    return await scheduling.carry_out(asker_of(call), target, [change], ChangeRequest(key, encoded(body)))


def encoded(asked: Struct) -> bytes:
    return msgspec.json.encode(asked)


async def change_calendar_event(
    call: Call, calendar_event_id: str, body: CalendarEventChange, query: ChangeQuery
) -> ShownCalendarEvent:
    """Change a calendar event: all of it, one occurrence, or one and all that follow"""
    key = find_key(call)
    return await change(call, calendar_event_id, body, query, key)


async def change(
    call: Call, event_id: str, body: CalendarEventChange, query: ChangeQuery, key: str | None
) -> ShownCalendarEvent:
    """Change an event as its operation does. A page has its own key."""
    return await again_if_changed(lambda: change_once(call, event_id, body, query, key))


async def again_if_changed(act: Callable[[], Awaitable[ShownCalendarEvent]]) -> ShownCalendarEvent:
    """Run `act`, again if the event changed meanwhile: requests name no version, and emails change it too."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(EventChanged):
            return await act()
    return await act()


async def change_once(
    call: Call, event_id: str, body: CalendarEventChange, query: ChangeQuery, key: str | None
) -> ShownCalendarEvent:
    target, event, at = await find_event(call, event_id, query)
    base = event.series.part if at is None else event_changes.part_at(event.series, at)
    fields = changed_fields(
        body, base, target.calendar, scheduling.organizer_of(target.inbox, base.organizer)
    )
    lines = None if body.recurrence is msgspec.UNSET else read_recurrence(body.recurrence)
    if at is None:
        changed = event_changes.change_all(event.series, fields, lines)
    elif query.scope == event_changes.THIS:
        changed = event_changes.change_this(event.series, at, fields)
    else:
        uid = scheduling.new_uid(call.caller, target, f"{key or call.now()} {at.recurrence_id}", call.now())
        changed = event_changes.change_following(event.series, at, fields, lines, uid)
    is_timed = not {"start", "seconds", "zone"}.isdisjoint(fields) or lines is not None
    exclusive = is_timed and not body.allow_overlap
    request = ChangeRequest(key, encoded(body))
    changes = to_changes(target, event, changed, kinds.CALENDAR_CHANGED, request, exclusive)
    return await scheduling.carry_out(asker_of(call), target, changes, request)


def to_changes(
    target: EventTarget,
    event: CalendarEvent,
    changed: event_changes.Changed,
    kind: str,
    request: ChangeRequest,
    exclusive: bool = False,
) -> list[EventChange]:
    """Return what becomes of the event, the email to those it removes, and the series split off."""
    inbox = target.inbox
    change = EventChange(event.calendar_id, changed.series, kind, event.id, event.version, exclusive)
    change = scheduling.with_mail(change, changed.mail, inbox, request)
    invited = replace(change, mail=changed.mail)
    notice = scheduling.uninvited(invited, event.series, inbox, request) if changed.rest is None else None
    found = [change] if notice is None else [change, notice]
    if changed.rest is not None:
        rest = EventChange(event.calendar_id, changed.rest, kinds.CALENDAR_CREATED)
        found.append(scheduling.with_mail(rest, EventMail("REQUEST", changed.rest), inbox, request))
    return found


async def cancel_calendar_event(call: Call, calendar_event_id: str, query: ChangeQuery) -> ShownCalendarEvent:
    """Cancel a calendar event: all of it, one occurrence, or one and all that follow"""
    key = find_key(call)
    return await cancel_of_series(call, calendar_event_id, query, key)


async def cancel_of_series(
    call: Call, event_id: str, query: ChangeQuery, key: str | None
) -> ShownCalendarEvent:
    """Cancel an event as its operation does. A page has its own key."""
    return await again_if_changed(lambda: cancel_once(call, event_id, query, key))


async def cancel_once(call: Call, event_id: str, query: ChangeQuery, key: str | None) -> ShownCalendarEvent:
    target, event, at = await find_event(call, event_id, query)
    if at is None and event.status == calendar_events.CANCELLED:
        return show_event(event, target.calendar)
    if at is None:
        changed = event_changes.cancel_all(event.series)
    elif query.scope == event_changes.THIS:
        changed = event_changes.cancel_this(event.series, at)
    else:
        changed = event_changes.cancel_following(event.series, at)
    kind = kinds.CALENDAR_CHANGED if query.scope == "following" and at else kinds.CALENDAR_CANCELLED
    request = ChangeRequest(key, encoded(query))
    changes = to_changes(target, event, changed, kind, request)
    return await scheduling.carry_out(asker_of(call), target, changes, request)


async def respond_to_calendar_event(call: Call, calendar_event_id: str, body: Response) -> ShownCalendarEvent:
    """Accept or decline an invitation in the calendar; the organizer gets the answer by email"""
    key = idempotency.require_key(header(call.request, b"idempotency-key"))
    return await respond(call, calendar_event_id, body, key)


async def respond(call: Call, event_id: str, body: Response, key: str) -> ShownCalendarEvent:
    """Answer an invitation as its operation does. A page has its own key."""
    event = await call.resources.db.read(calendar_events.get, call.scope, event_id)
    if event.is_own or event.message_id is None:
        raise NotAnInvitation(
            "This event did not come as an invitation by email: nobody waits for an answer."
        )
    message_id = event.message_id
    order = await to_answer(call.resources, call.scope, message_id, body.response, body.comment, key)
    order = replace(order, traceparent=call.origin.traceparent)
    answers = await scheduling.accept(asker_of(call), [order])
    return await call.resources.db.read(scheduling.read_event, event.id, scheduling.held_of(answers[0]))


async def find_event(
    call: Call, event_id: str, query: ChangeQuery
) -> tuple[EventTarget, CalendarEvent, EventTime | None]:
    """Return the event, and the occurrence that the query names or None for the whole event."""
    target = await call.resources.db.read(scheduling.find_target, call.scope, event_id)
    event = target.event
    assert event is not None
    if not event.is_own:
        raise NotOrganizer("Only the organizer changes this event. Answer the invitation with respond.")
    if query.scope == event_changes.ALL or not (event.series.lines or event.series.overrides):
        return target, event, None
    if query.recurrence_id is None:
        raise BadRequest("recurrenceId must name the occurrence.", field="recurrenceId")
    try:
        at = event_changes.find_occurrence(event.series, target.calendar, query.recurrence_id)
    except (ValueError, OverflowError):
        at = None
    if at is None:
        raise BadRequest(
            f"recurrenceId is no occurrence of this series: {query.recurrence_id!r}. List its occurrences.",
            field="recurrenceId",
        )
    return target, event, at
