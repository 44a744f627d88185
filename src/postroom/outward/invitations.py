"""Appointments in outgoing mail: invitations, and answers to received ones."""

from collections.abc import Sequence
from datetime import UTC, datetime

from postroom.accounts.scope import Scope
from postroom.errors import NotAnInvitation
from postroom.inward.appointment import read_appointment
from postroom.mailbox import inboxes, messages, raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.documents import Appointment
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import RECEIVED, Message
from postroom.outward import event_changes
from postroom.outward.event_changes import EventChange
from postroom.outward.send_stages import Order
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import Address, mailbox_of, validate
from postroom_mail.mime.parse import parse_mail
from postroom_mail.reading.appointment import calendars_of
from postroom_mail.reading.series import EventTime, Override, with_override
from postroom_mail.writing import invitation, invitation_answer, series_file
from postroom_mail.writing.compose import DraftAttachment
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.invitation import CalendarFile, CalendarSender, Invitation
from postroom_mail.writing.invitation_answer import CalendarAnswer, Invited
from postroom_mail.writing.series_file import EventMail

SUBJECT_CHARACTERS = 900
FILE_NAME, FILE_TYPE = "invite.ics", "application/ics"
SAID = {"accepted": "Accepted", "declined": "Declined", "tentative": "Maybe"}


def write_calendar(
    order: Order, inbox: Inbox, recipients: tuple[Address, ...], message_id: str, said: str, now: int
) -> CalendarFile | None:
    """Return None if the mail is about no appointment."""
    if order.calendar is None:
        return None
    own = Address(
        inbox.display_name or "", inbox.sender if order.from_address is None else order.from_address
    )
    sender = CalendarSender(own, message_id, datetime.fromtimestamp(now / 1000, UTC))
    if isinstance(order.calendar, Invitation):
        return invitation.write(order.calendar, sender, recipients, said)
    if isinstance(order.calendar, EventChange):
        return (
            None
            if order.calendar.mail is None
            else series_file.write_mail(order.calendar.mail, sender.sent_at)
        )
    return invitation_answer.write(order.calendar, sender)


def with_file(files: Sequence[DraftAttachment], calendar: CalendarFile) -> tuple[DraftAttachment, ...]:
    """Attaches the calendar also as a file: some programs read only that."""
    return (DraftAttachment(FILE_NAME, FILE_TYPE, calendar.content), *files)


def read_written(raw: bytes) -> tuple[Appointment | None, tuple[Attachment, ...]]:
    """Return the appointment and the files of an email just written, as its recipient will read them."""
    mail = parse_mail(raw)
    described = (
        Attachment(file.filename, position, file.content_type, len(file.content))
        for position, file in enumerate(mail.attachments)
    )
    return read_appointment(mail), tuple(described)


async def to_answer(
    resources: Resources, scope: Scope, message_id: str, status: str, comment: str, key: str
) -> Order:
    """Return an order that answers the invitation in a message."""
    message, inbox = await resources.db.read(find_invited, scope, message_id)
    raw = await raw_mails.read(resources, message.id, with_trace=False)
    invited = await pools.READING.run(find_invitation, raw)
    organizer = require_answerable(message, invited)
    assert invited is not None
    attendee = attendee_of(invited, inbox)
    return Order(
        inbox_id=inbox.id,
        idempotency_key=key,
        request_hash=hash_answer(message_id, status, comment),
        to=(organizer,),
        subject=subject_of(status, invited),
        body=comment or f"{SAID[status]}: {invited.summary}".rstrip(": "),
        thread_id=message.thread_id,
        calendar=CalendarAnswer(invited, status.upper(), attendee, comment),
        from_address=sender_for(attendee, inbox),
    )


def to_answer_of_series(
    inbox: Inbox, event: CalendarEvent, status: str, key: str, now: int, at: EventTime | None = None
) -> Order:
    """Return an order that answers an invitation without an email here, or one occurrence of it."""
    sent_at = datetime.fromtimestamp(now / 1000, UTC)
    series, only = event.series, ""
    if at is not None:
        only = at.recurrence_id
        series = with_override(series, Override(only, event_changes.part_at(series, at)))
    asked = series_file.write_mail(EventMail(invitation.REQUEST, series, only), sent_at)
    invited = invitation_answer.find_invitation(asked.content)
    organizer = require_organizer(invited)
    assert invited is not None
    attendee = attendee_of(invited, inbox)
    return Order(
        inbox_id=inbox.id,
        idempotency_key=key,
        request_hash=hash_answer(f"{event.id} {only}".strip(), status, ""),
        to=(organizer,),
        subject=subject_of(status, invited),
        body=f"{SAID[status]}: {invited.summary}".rstrip(": "),
        thread_id=event.thread_id,
        calendar=CalendarAnswer(invited, status.upper(), attendee, only=only),
        from_address=sender_for(attendee, inbox),
    )


def find_invited(tx: Tx, scope: Scope, message_id: str) -> tuple[Message, Inbox]:
    message = messages.get(tx, scope, message_id)
    return message, inboxes.get(tx, scope, message.inbox_id)


def find_invitation(raw: bytes) -> Invited | None:
    found = map(invitation_answer.find_invitation, calendars_of(parse_mail(raw)))
    return next((each for each in found if each is not None), None)


def require_answerable(message: Message, invited: Invited | None) -> Address:
    """Returns the organizer, to whom an answer goes (RFC 5546, 3.2.3)."""
    return require_organizer(invited if message.status == RECEIVED else None)


def require_organizer(invited: Invited | None) -> Address:
    try:
        if invited is None:
            raise ValueError("no invitation")
        return Address("", validate(invited.organizer))
    except ValueError:
        raise NotAnInvitation("This message has no invitation that can be answered by mail.") from None


def attendee_of(invited: Invited, inbox: Inbox) -> str:
    """Return the inbox's address as the organizer wrote it, perhaps tagged; its own if invited by a list."""
    own = (each for each in invited.attendees if mailbox_of(each) in inbox.mailboxes)
    return next(own, inbox.sender)


def sender_for(attendee: str, inbox: Inbox) -> str | None:
    """Return the address here that answers as this attendee: organizers believe nobody else's answer."""
    mailbox = mailbox_of(attendee)
    usable = inbox.own_addresses[1:] if inbox.connection_id else inbox.own_addresses
    return mailbox if mailbox in usable else None


def subject_of(status: str, invited: Invited) -> str:
    summary = " ".join(CONTROL.sub(" ", invited.summary).split())[:SUBJECT_CHARACTERS]
    return f"{SAID[status]}: {summary}" if summary else SAID[status]


def hash_answer(message_id: str, status: str, comment: str) -> str:
    return idempotency.hash_request(
        b"calendar", message_id.encode(), status.encode(), comment.encode(errors="replace")
    )
