"""Changes of events with all that belongs to them: one transaction, also with the emails that tell attendees.

REST, pages and CalDAV come here, so that no door has its own rules.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden
from postroom.events import kinds
from postroom.inward.calendar_changes import address_of
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.calendar_json import ShownCalendarEvent, show_event
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.operations.calendars.event_fields import recipients_of
from postroom.operations.inbox_fields import get_named
from postroom.outward import own_events
from postroom.outward.event_changes import EventChange
from postroom.outward.invitations import sender_for
from postroom.outward.send import send_mail, send_together
from postroom.outward.send_stages import Order, SendAnswer, SendReceipt
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import Address
from postroom_mail.reading.series import EventPart, Series
from postroom_mail.writing.header_words import DraftError
from postroom_mail.writing.invitation import CANCEL
from postroom_mail.writing.series_file import EventMail, part_of

SUBJECTS = {
    kinds.CALENDAR_CREATED: "Invitation",
    kinds.CALENDAR_CHANGED: "Updated",
    kinds.CALENDAR_CANCELLED: "Cancelled",
}
NOBODY: frozenset[str] = frozenset()


class Asker(Struct, frozen=True):
    """Who asks for a change. `traceparent` is of the request; `mark_replay` is called if it is repeated."""

    resources: Resources
    caller: Caller
    traceparent: str = ""
    mark_replay: Callable[[], None] = lambda: None


class EventTarget(Struct, frozen=True):
    """What a request is about, as it was read; `event` is None for a new one."""

    calendar: InboxCalendar
    inbox: Inbox
    event: CalendarEvent | None = None


class ChangeRequest(Struct, frozen=True):
    """What was asked: its key, which only changes sent to attendees need, and its fields.

    `notified_by_client` are addresses that the client notifies itself.
    """

    key: str | None
    asked: bytes
    notified_by_client: frozenset[str] = NOBODY


def require_may(caller: Caller, sends: bool) -> None:
    """Raise if the change sends email and the key may not. A draft key may: its invitations are held."""
    if sends and not caller.permissions & {"send", "draft"}:
        raise Forbidden("Inviting attendees needs the permission send or draft.")


def find_calendar(tx: Tx, scope: Scope, calendar_id: str | None, inbox_id: str | None) -> EventTarget:
    if calendar_id is not None:
        calendar = inbox_calendars.get(tx, scope, calendar_id)
        return EventTarget(calendar, inboxes.get(tx, scope, calendar.inbox_id))
    wanted = inbox_id or scope.inbox_id
    if wanted is None:
        raise BadRequest("Give calendarId or inboxId.", field="calendarId")
    inbox = get_named(tx, scope, wanted)
    return EventTarget(inbox_calendars.default_of(tx, inbox.id), inbox)


def find_target(tx: Tx, scope: Scope, event_id: str) -> EventTarget:
    event = calendar_events.get(tx, scope, event_id)
    calendar = inbox_calendars.get(tx, scope, event.calendar_id)
    return EventTarget(calendar, inboxes.get(tx, scope, event.inbox_id), event)


def with_mail(change: EventChange, mail: EventMail, inbox: Inbox, request: ChangeRequest) -> EventChange:
    """Return the change, with its email if there are attendees to notify."""
    part = part_of(mail.series, mail.only)
    return replace(change, mail=mail if recipients_to_notify(part, inbox, request) else None)


def recipients_to_notify(part: EventPart, inbox: Inbox, request: ChangeRequest) -> tuple[Address, ...]:
    others = recipients_of(part, inbox.own_addresses)
    return tuple(each for each in others if each.address.lower() not in request.notified_by_client)


def uninvited(
    change: EventChange, before: Series, inbox: Inbox, request: ChangeRequest
) -> EventChange | None:
    """Return the cancellation to attendees whom a change removes (RFC 5546, section 3.2.2.6)."""
    only = "" if change.mail is None else change.mail.only
    now = part_of(change.series, only)
    left = {*inbox.own_addresses, *(each.address.lower() for each in now.attendees)}
    known = part_of(before, only).attendees
    removed = tuple(each for each in known if each.address.lower() not in left)
    if not removed or change.is_off:
        return None
    off = replace(now, attendees=removed, organizer=now.organizer or part_of(before, only).organizer)
    series = _only_with(change.series, only, off)
    notice = EventChange(change.calendar_id, series, kinds.CALENDAR_CANCELLED, is_notice=True)
    notice = with_mail(notice, EventMail(CANCEL, series, only), inbox, request)
    return notice if notice.mail is not None else None


def _only_with(series: Series, only: str, part: EventPart) -> Series:
    if not only:
        return replace(series, part=part, overrides=())
    overrides = (replace(each, part=part) for each in series.overrides if each.recurrence_id == only)
    return replace(series, overrides=tuple(overrides))


async def carry_out(
    asker: Asker, target: EventTarget, changes: Sequence[EventChange], request: ChangeRequest
) -> ShownCalendarEvent:
    """Make all changes in one transaction, with their emails. Return the last event."""
    resources, caller = asker.resources, asker.caller
    require_may(caller, any(each.mail is not None for each in changes))
    orders = list(to_orders(asker, target, changes, request))
    hold = None
    if orders:
        answers = await accept(asker, orders)
        if answers[0].is_replay:
            asker.mark_replay()
        hold = held_of(answers[-1 if changes[-1].mail is not None else 0])
    else:
        given = (caller.scope, caller.actor, changes, resources.now())
        await resources.db.write(own_events.carry_out_all, *given)
    uid = next(each.series.uid for each in reversed(changes) if not each.is_notice)
    return await resources.db.read(read_of_uid, target.calendar.id, uid, hold)


def to_orders(
    asker: Asker, target: EventTarget, changes: Sequence[EventChange], request: ChangeRequest
) -> Iterator[Order]:
    """Yield an order for each change that sends email; the first carries the others."""
    telling = [each for each in changes if each.mail is not None]
    silent = tuple(each for each in changes if each.mail is None)
    for number, each in enumerate(telling):
        key = idempotency.require_key(request.key)
        key = key if number == 0 else hashlib.sha256(f"{key} {number}".encode()).hexdigest()
        also = silent if number == 0 else ()
        yield to_order(asker, target, replace(each, also=also), replace(request, key=key))


async def accept(asker: Asker, orders: Sequence[Order]) -> list[SendAnswer]:
    try:
        if len(orders) == 1:
            return [await send_mail(asker.resources, asker.caller, orders[0])]
        return await send_together(asker.resources, asker.caller, orders)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into an email: {error}", field=error.field) from None


def to_order(asker: Asker, target: EventTarget, change: EventChange, request: ChangeRequest) -> Order:
    assert change.mail is not None
    assert request.key is not None
    part = part_of(change.mail.series, change.mail.only)
    event = target.event
    named = event.id if event is not None else target.calendar.id
    return Order(
        inbox_id=target.inbox.id,
        idempotency_key=request.key,
        request_hash=idempotency.hash_request(
            b"calendar event", change.kind.encode(), named.encode(), request.asked
        ),
        to=recipients_to_notify(part, target.inbox, request),
        subject=f"{SUBJECTS[change.kind]}: {part.summary}"[: limits.SUBJECT_CHARACTERS],
        body=part.description.strip() or part.summary,
        thread_id=None if event is None else event.thread_id,
        calendar=change,
        from_address=sender_for(address_of(part.organizer), target.inbox),
        copies_sender=False,
        traceparent=asker.traceparent,
    )


def organizer_of(inbox: Inbox, named: str = "") -> str:
    """Return the organizer of an event of the inbox: the alias that is named, else who its email is from.

    Attendees believe an update only from the organizer that it names.
    """
    address = sender_for(address_of(named), inbox) if named else None
    return str(Address(inbox.display_name or "", address or inbox.sender))


def new_uid(caller: Caller, target: EventTarget, key: str | None, now: int) -> str:
    """Return the UID of a new event, the same for a repeated request."""
    domain = target.inbox.address.rpartition("@")[2]
    if key is None:
        return f"{ids.new(ids.CALENDAR_EVENT, now)}@{domain}"
    digest = hashlib.sha256(f"{caller.account_id} {target.calendar.id} {key}".encode()).hexdigest()
    return f"{digest[:32]}@{domain}"


def held_of(answer: SendAnswer) -> ShownHold | None:
    receipt = msgspec.json.decode(answer.content, type=SendReceipt)
    return None if isinstance(receipt.hold, msgspec.UnsetType) else receipt.hold


def read_of_uid(tx: Tx, calendar_id: str, uid: str, hold: ShownHold | None) -> ShownCalendarEvent:
    found = calendar_events.find_of_calendar(tx, calendar_id, uid)
    assert found is not None
    return read_event(tx, found.id, hold)


def read_event(tx: Tx, event_id: str, hold: ShownHold | None) -> ShownCalendarEvent:
    event = calendar_events.find(tx, event_id)
    assert event is not None
    return show_event(event, inbox_calendars.get(tx, event.scope, event.calendar_id), None, hold)
