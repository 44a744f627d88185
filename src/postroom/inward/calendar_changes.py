"""What an invitation, an update, a cancellation or an answer that comes by email changes in the calendar.

RFC 5546: only the organizer changes an event, and only an attendee answers it. Both are who the email is
proven to be from; anybody else changes nothing, and the message says so.
"""

from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.calendar_errors import CalendarLimitReached
from postroom.events import kinds
from postroom.events.calendar_notices import emit
from postroom.inward.genuine import is_genuine
from postroom.inward.screening import Screening
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import calendar_events, calendar_json
from postroom.mailbox.calendars.calendar_events import (
    CANCELLED,
    NEEDS_ACTION,
    PROPOSALS,
    CalendarEvent,
    Proposal,
)
from postroom.mailbox.documents import Document, Signal
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of, parse_list
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading.appointment import MAX_CALENDAR_BYTES, calendars_of
from postroom_mail.reading.calendar import Attendee
from postroom_mail.reading.series import (
    CalendarObjects,
    Override,
    Series,
    read_objects,
    to_local,
    to_moment,
    with_override,
)

REQUEST, CANCEL, REPLY, COUNTER = "REQUEST", "CANCEL", "REPLY", "COUNTER"
MAX_SERIES = 20  # of one email
FORGED = Signal("calendar_forged", 3, "It changes an event of somebody else: nothing was changed.", "")
ON_BEHALF = Signal("calendar_organizer", 1, "The organizer of this invitation is not its sender.", "")


class ArrivedChange(Struct, frozen=True):
    """A change that came by email, and the event that it is about, if that is known."""

    inbox: Inbox
    document: Document
    method: str
    series: Series
    known: CalendarEvent | None
    comment: str

    @property
    def sender(self) -> str:
        found = parse_list(self.document.from_addr)
        return mailbox_of(found[0].address) if len(found) == 1 else ""

    @property
    def organizer(self) -> str:
        return address_of(self.series.part.organizer)

    @property
    def own_answer(self) -> Attendee | None:
        """Return who answers: a reply names nobody else (RFC 5546, section 3.2.3)."""
        return next(iter(self.series.part.attendees), None)


def read(mail: ParsedMail) -> CalendarObjects | None:
    """Return the calendar of an email, as its `calendar` shows it: the first with an appointment."""
    for content in calendars_of(mail):
        found = read_objects(content[:MAX_CALENDAR_BYTES])
        if found.series:
            return found if found.method in (REQUEST, CANCEL, REPLY, COUNTER) else None
    return None


def address_of(written: str) -> str:
    found = parse_list(written)
    return mailbox_of(found[0].address) if found else mailbox_of(written)


def list_arrived(
    tx: Tx, inbox: Inbox, document: Document, objects: CalendarObjects | None
) -> list[ArrivedChange]:
    if objects is None:
        return []
    return [
        ArrivedChange(
            inbox,
            document,
            objects.method,
            series,
            calendar_events.find_of_inbox(tx, inbox.id, series.uid),
            objects.comment,
        )
        for series in objects.series[:MAX_SERIES]
        if series.uid
    ]


def weigh(
    tx: Tx, inbox: Inbox, document: Document, objects: CalendarObjects | None, found: Screening
) -> Screening:
    """Adds a signal if somebody else than the organizer, or the attendee, wrote this."""
    for each in list_arrived(tx, inbox, document, objects):
        signal = objection(each)
        if signal is not None:
            worse = "suspicious" if signal is FORGED and found.verdict == "clean" else found.verdict
            return Screening(worse, [*found.signals, replace(signal, excerpt=each.organizer or each.sender)])
    return found


def objection(arrived: ArrivedChange) -> Signal | None:
    if arrived.method in (REPLY, COUNTER):
        claimed = arrived.own_answer
        is_other = claimed is not None and mailbox_of(claimed.address) != arrived.sender
        return FORGED if is_other and arrived.known is not None else None
    if arrived.known is None:
        return None if arrived.method == CANCEL or is_organizer(arrived) else ON_BEHALF
    return None if may_change(arrived) else FORGED


def is_organizer(arrived: ArrivedChange) -> bool:
    """Return whether the email is from the organizer that it names, as far as its domain lets us prove it."""
    return bool(arrived.sender) and arrived.organizer == arrived.sender and is_genuine(arrived.document)


def may_change(arrived: ArrivedChange) -> bool:
    known = arrived.known
    assert known is not None
    return (
        not known.is_own
        and is_organizer(arrived)
        and address_of(known.series.part.organizer) == arrived.organizer
    )


def keep(tx: Tx, message_id: str, objects: CalendarObjects | None) -> None:
    """Keep the changes of a message that is not let in yet, or never."""
    if objects is not None:
        written = msgspec.json.encode(objects).decode()
        tx.run(
            "update blocked_mails set calendar = :written where message_id = :id",
            written=written,
            id=message_id,
        )


def find_kept(tx: Tx, message_id: str) -> CalendarObjects | None:
    row = tx.one("select calendar from blocked_mails where message_id = :id", id=message_id)
    kept = None if row is None else row["calendar"]
    return None if kept is None else msgspec.json.decode(kept, type=CalendarObjects)


def apply(tx: Tx, inbox: Inbox, document: Document, objects: CalendarObjects | None, now: int) -> None:
    """Changes the calendar, in the transaction that lets the message into its inbox."""
    for each in list_arrived(tx, inbox, document, objects):
        try:
            apply_one(tx, each, now)
        except CalendarLimitReached:
            return


def apply_one(tx: Tx, arrived: ArrivedChange, now: int) -> None:
    if arrived.method in (REPLY, COUNTER):
        answer(tx, arrived, now)
    elif arrived.known is None:
        if arrived.method == REQUEST and is_organizer(arrived):
            invite(tx, arrived, now)
    elif may_change(arrived) and is_newer(arrived.known, arrived.series):
        change(tx, arrived, arrived.known, now)


def is_newer(known: CalendarEvent, series: Series) -> bool:
    """Return whether a series is newer. A lower sequence was sent before, and came late (RFC 5546, 2.1.4)."""
    recurrence_id = series.only
    parts = [each.part for each in known.series.overrides if each.recurrence_id == recurrence_id]
    return series.part.sequence >= (parts[0] if parts and recurrence_id else known.series.part).sequence


def invite(tx: Tx, arrived: ArrivedChange, now: int) -> None:
    calendar = inbox_calendars.default_of(tx, arrived.inbox.id)
    event = calendar_events.new(calendar, arrived.series, now)
    event = from_message(replace(event, own_response=own_status(arrived)), arrived.document)
    event = calendar_events.put(tx, calendar, event, (), now, is_new=True)
    emit(tx, kinds.CALENDAR_INVITED, calendar, event, now)


def own_status(arrived: ArrivedChange) -> str:
    """Return what the organizer already knows as this inbox's answer."""
    own = arrived.inbox.mailboxes
    found = (each for each in arrived.series.part.attendees if mailbox_of(each.address) in own)
    status = next((each.participation_status for each in found), "")
    return status if status in ("accepted", "declined", "tentative") else NEEDS_ACTION


def from_message(event: CalendarEvent, document: Document) -> CalendarEvent:
    return replace(
        event,
        message_id=document.id,
        thread_id=document.thread_id,
        verdict=document.verdict,
        status=event.series.part.status,
        seen_by=None,
    )


def change(tx: Tx, arrived: ArrivedChange, known: CalendarEvent, now: int) -> None:
    calendar = find_calendar(tx, known)
    series = merged(known.series, arrived.series, arrived.method)
    is_moved = (series.part.start, series.part.zone, series.part.seconds, series.lines) != (
        known.series.part.start,
        known.series.part.zone,
        known.series.part.seconds,
        known.series.lines,
    )
    asks_again = arrived.method == REQUEST and is_moved
    response = NEEDS_ACTION if asks_again else known.own_response
    event = from_message(replace(known, series=series, own_response=response), arrived.document)
    event = calendar_events.put(tx, calendar, event, (), now, is_new=False)
    kind = kinds.CALENDAR_CANCELLED if arrived.method == CANCEL else kinds.CALENDAR_CHANGED
    emit(tx, kind, calendar, event, now)


def merged(known: Series, new: Series, method: str) -> Series:
    """Merge a change. One occurrence is changed inside its series; a change of the whole replaces it."""
    if new.only and not known.only:
        status = CANCELLED if method == CANCEL else new.part.status
        return with_override(known, Override(recurrence_id_in(known, new), replace(new.part, status=status)))
    if method == CANCEL:
        off = replace(known.part, status=CANCELLED, sequence=new.part.sequence)
        return replace(known, part=off)
    return new


def recurrence_id_in(known: Series, new: Series) -> str:
    """Return the recurrence id as a local time of the series, whatever zone the email used."""
    if not known.part.zone or not new.part.zone or len(new.only) == 10:
        return new.only
    at = to_moment(datetime.fromisoformat(new.only), new.part.zone, new.zone_rules, "UTC")
    return to_local(at, known.part.zone, known.zone_rules).isoformat()


def answer(tx: Tx, arrived: ArrivedChange, now: int) -> None:
    """Record an attendee's answer, or the other time proposed."""
    known, claimed = arrived.known, arrived.own_answer
    if known is None or claimed is None or not known.is_own or not is_genuine(arrived.document):
        return
    wanted = mailbox_of(claimed.address)
    if wanted != arrived.sender or not any(
        mailbox_of(each.address) == wanted for each in known.series.part.attendees
    ):
        return
    response = claimed.participation_status or "tentative"
    calendar = find_calendar(tx, known)
    event = replace(known, series=answered(known.series, arrived.series, wanted, response), seen_by=None)
    if arrived.method == COUNTER:
        event = replace(
            event, proposals=(*known.proposals, to_proposal(arrived, calendar, wanted))[-PROPOSALS:]
        )
    reserved = calendar_events.list_reserved(tx, known.id)
    if response == calendar_events.DECLINED and not arrived.series.only:
        inbox = calendar_events.find_reserved(tx, known.id, wanted)
        reserved = [each for each in reserved if each != inbox]
    event = calendar_events.put(tx, calendar, event, reserved, now, is_new=False)
    emit(tx, kinds.CALENDAR_ANSWERED, calendar, event, now, attendee=wanted, response=response)


def answered(series: Series, reply: Series, address: str, response: str) -> Series:
    """Return the series with the reply, for the whole or for the occurrence that it names."""
    if not reply.only:
        return replace(
            series, part=replace(series.part, attendees=with_status(series.part.attendees, address, response))
        )
    recurrence_id = recurrence_id_in(series, reply)
    known = next((each.part for each in series.overrides if each.recurrence_id == recurrence_id), None)
    part = known or replace(series.part, start=recurrence_id)
    changed = replace(part, attendees=with_status(part.attendees, address, response))
    return with_override(series, Override(recurrence_id, changed))


def with_status(attendees: tuple[Attendee, ...], address: str, response: str) -> tuple[Attendee, ...]:
    return tuple(
        Attendee(each.address, each.name, response, each.role)
        if mailbox_of(each.address) == address
        else each
        for each in attendees
    )


def to_proposal(arrived: ArrivedChange, calendar: InboxCalendar, address: str) -> Proposal:
    start, end = calendar_json.when(arrived.series, arrived.series.part, calendar)
    return Proposal(address, start, end, arrived.comment[:1000], arrived.document.id)


def find_calendar(tx: Tx, event: CalendarEvent) -> InboxCalendar:
    return inbox_calendars.get(tx, event.scope, event.calendar_id)
