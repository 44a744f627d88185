"""Calendar events over REST: made, changed, cancelled and answered, with the emails that say so."""

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.calendar_errors import NotOrganizer
from postroom.errors import BadRequest, Forbidden, NotAnInvitation
from postroom.events import kinds
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.calendar_json import ShownCalendarEvent, show_event
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.operations.calendars.event_fields import (
    CalendarEventChange,
    NewCalendarEvent,
    changed_fields,
    read_recurrence,
    recipients_of,
    to_series,
)
from postroom.outward import event_changes, own_events
from postroom.outward.event_changes import Changed, EventChange
from postroom.outward.invitations import to_answer
from postroom.outward.send_stages import Order, SendReceipt
from postroom.queue import idempotency
from postroom.resources import Tx
from postroom.web.api.send import accept_order
from postroom.web.call import Call
from postroom.web.requests.request_body import header
from postroom_mail.mime.address import Address
from postroom_mail.reading.series import EventTime
from postroom_mail.writing.series_file import EventMail, part_of

SUBJECTS = {
    kinds.CALENDAR_CREATED: "Invitation",
    kinds.CALENDAR_CHANGED: "Updated",
    kinds.CALENDAR_CANCELLED: "Cancelled",
}

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
    """Return the Idempotency-Key, which only changes that are told to attendees need."""
    given = header(call.request, b"idempotency-key")
    return idempotency.require_key(given) if given else None


class EventTarget(Struct, frozen=True):
    """What a request is about, as it was read; `event` is None for a new one."""

    calendar: InboxCalendar
    inbox: Inbox
    event: CalendarEvent | None = None


async def create_calendar_event(call: Call, body: NewCalendarEvent) -> ShownCalendarEvent:
    """Create a calendar event; attendees get an invitation by email"""
    key = find_key(call)
    target = await call.resources.db.read(find_calendar, call.scope, body.calendar_id, body.inbox_id)
    require_may(call.caller, bool(body.attendees))
    uid = new_uid(call.caller, target, key, call.now())
    series = to_series(body, target.calendar, organizer_of(target.inbox), uid)
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
    return await carry_out(call, target, change, key, body)


async def change_calendar_event(
    call: Call, calendar_event_id: str, body: CalendarEventChange, query: ChangeQuery
) -> ShownCalendarEvent:
    """Change a calendar event: all of it, one occurrence, or one and all that follow"""
    key = find_key(call)
    return await change(call, calendar_event_id, body, query, key)


async def change(
    call: Call, event_id: str, body: CalendarEventChange, query: ChangeQuery, key: str | None
) -> ShownCalendarEvent:
    """The same for a page, which has a key of its own."""
    target, event, at = await find_event(call, event_id, query)
    base = event.series.part if at is None else event_changes.part_at(event.series, at)
    fields = changed_fields(body, base, target.calendar, organizer_of(target.inbox))
    lines = None if body.recurrence is msgspec.UNSET else read_recurrence(body.recurrence)
    if at is None:
        changed = event_changes.change_all(event.series, fields, lines)
    elif query.scope == event_changes.THIS:
        changed = event_changes.change_this(event.series, at, fields)
    else:
        uid = new_uid(call.caller, target, f"{key or call.now()} {at.recurrence_id}", call.now())
        changed = event_changes.change_following(event.series, at, fields, lines, uid)
    is_timed = not {"start", "seconds", "zone"}.isdisjoint(fields) or lines is not None
    exclusive = is_timed and not body.allow_overlap
    shown = await tell_change(call, target, event, changed, kinds.CALENDAR_CHANGED, key, body, exclusive)
    if changed.rest is None:
        return shown
    rest = EventChange(
        calendar_id=event.calendar_id,
        series=changed.rest,
        kind=kinds.CALENDAR_CREATED,
        mail=EventMail("REQUEST", changed.rest) if changed.rest.part.attendees else None,
    )
    return await carry_out(call, replace(target, event=None), rest, second_key(key), body)


async def cancel_calendar_event(call: Call, calendar_event_id: str, query: ChangeQuery) -> ShownCalendarEvent:
    """Cancel a calendar event: all of it, one occurrence, or one and all that follow"""
    key = find_key(call)
    return await cancel_of_series(call, calendar_event_id, query, key)


async def cancel_of_series(
    call: Call, event_id: str, query: ChangeQuery, key: str | None
) -> ShownCalendarEvent:
    """The same for a page, which has a key of its own."""
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
    return await tell_change(call, target, event, changed, kind, key, query, False)


async def respond_to_calendar_event(call: Call, calendar_event_id: str, body: Response) -> ShownCalendarEvent:
    """Accept or decline an invitation in the calendar; the organizer gets the answer by email"""
    key = idempotency.require_key(header(call.request, b"idempotency-key"))
    return await respond(call, calendar_event_id, body, key)


async def respond(call: Call, event_id: str, body: Response, key: str) -> ShownCalendarEvent:
    """The same for a page, which has a key of its own."""
    event = await call.resources.db.read(calendar_events.get, call.scope, event_id)
    if event.is_own or event.message_id is None:
        raise NotAnInvitation(
            "This event did not come as an invitation by email: nobody waits for an answer."
        )
    message_id = event.message_id
    order = await to_answer(call.resources, call.scope, message_id, body.response, body.comment, key)
    receipt = read_receipt((await accept_order(call, order)).content)
    return await call.resources.db.read(read_event, event.id, held_of(receipt))


def require_may(caller: Caller, sends: bool) -> None:
    """A key that only drafts may keep a calendar; what invites somebody is then held like any send."""
    if sends and not caller.permissions & {"send", "draft"}:
        raise Forbidden("Inviting attendees needs the permission send or draft.")


def find_calendar(tx: Tx, scope: Scope, calendar_id: str | None, inbox_id: str | None) -> EventTarget:
    if calendar_id is not None:
        calendar = inbox_calendars.get(tx, scope, calendar_id)
        return EventTarget(calendar, inboxes.get(tx, scope, calendar.inbox_id))
    wanted = inbox_id or scope.inbox_id
    if wanted is None:
        raise BadRequest("Give calendarId or inboxId.", field="calendarId")
    inbox = inboxes.get(tx, scope, wanted)
    return EventTarget(inbox_calendars.default_of(tx, inbox.id), inbox)


async def find_event(
    call: Call, event_id: str, query: ChangeQuery
) -> tuple[EventTarget, CalendarEvent, EventTime | None]:
    """The event, and the occurrence that is meant; None: all of it."""
    target = await call.resources.db.read(find_target, call.scope, event_id)
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


def find_target(tx: Tx, scope: Scope, event_id: str) -> EventTarget:
    event = calendar_events.get(tx, scope, event_id)
    calendar = inbox_calendars.get(tx, scope, event.calendar_id)
    return EventTarget(calendar, inboxes.get(tx, scope, event.inbox_id), event)


async def tell_change(
    call: Call,
    target: EventTarget,
    event: CalendarEvent,
    changed: Changed,
    kind: str,
    key: str | None,
    asked: Struct,
    exclusive: bool,
) -> ShownCalendarEvent:
    part = part_of(changed.series, changed.mail.only)
    mail = changed.mail if recipients_of(part, target.inbox.address) else None
    require_may(call.caller, mail is not None)
    change = EventChange(event.calendar_id, changed.series, kind, event.id, event.version, exclusive, mail)
    return await carry_out(call, target, change, key, asked)


async def carry_out(
    call: Call, target: EventTarget, change: EventChange, key: str | None, asked: Struct
) -> ShownCalendarEvent:
    """In one transaction; where attendees are told, in that of the email."""
    caller = call.decider
    if change.mail is None:
        arguments = (caller.scope, caller.actor, change, call.now())
        event = await call.resources.db.write(own_events.carry_out, *arguments)
        return show_event(event, target.calendar)
    order = to_order(target, change, idempotency.require_key(key), asked)
    receipt = read_receipt((await accept_order(call, order)).content)
    uid = change.series.uid
    return await call.resources.db.read(read_of_uid, target.calendar.id, uid, held_of(receipt))


def to_order(target: EventTarget, change: EventChange, key: str, asked: Struct) -> Order:
    assert change.mail is not None
    part = part_of(change.series, change.mail.only)
    event = target.event
    subject = f"{SUBJECTS[change.kind]}: {part.summary}"[: limits.SUBJECT_CHARACTERS]
    text = part.description.strip() or part.summary
    named = event.id if event is not None else target.calendar.id
    return Order(
        inbox_id=target.inbox.id,
        idempotency_key=key,
        request_hash=idempotency.hash_request(
            b"calendar event", change.kind.encode(), named.encode(), msgspec.json.encode(asked)
        ),
        to=recipients_of(part, target.inbox.address),
        subject=subject,
        body=text,
        thread_id=None if event is None else event.thread_id,
        calendar=change,
        copies_sender=False,
    )


def organizer_of(inbox: Inbox) -> str:
    return str(Address(inbox.display_name or "", inbox.address))


def new_uid(caller: Caller, target: EventTarget, key: str | None, now: int) -> str:
    """The same for a repeated request."""
    domain = target.inbox.address.rpartition("@")[2]
    if key is None:
        return f"{ids.new(ids.CALENDAR_EVENT, now)}@{domain}"
    digest = hashlib.sha256(f"{caller.account_id} {target.calendar.id} {key}".encode()).hexdigest()
    return f"{digest[:32]}@{domain}"


def second_key(key: str | None) -> str | None:
    return None if key is None else hashlib.sha256(f"{key} following".encode()).hexdigest()


def read_receipt(content: bytes) -> SendReceipt:
    return msgspec.json.decode(content, type=SendReceipt)


def held_of(receipt: SendReceipt) -> ShownHold | None:
    return None if isinstance(receipt.hold, msgspec.UnsetType) else receipt.hold


def read_of_uid(tx: Tx, calendar_id: str, uid: str, hold: ShownHold | None) -> ShownCalendarEvent:
    found = calendar_events.find_of_calendar(tx, calendar_id, uid)
    assert found is not None
    return read_event(tx, found.id, hold)


def read_event(tx: Tx, event_id: str, hold: ShownHold | None) -> ShownCalendarEvent:
    event = calendar_events.find(tx, event_id)
    assert event is not None
    return show_event(event, inbox_calendars.get(tx, event.scope, event.calendar_id), None, hold)
