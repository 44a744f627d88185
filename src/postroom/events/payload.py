"""The JSON of an event, the same on the stream, in webhooks and in the log.

A stub has everything but the texts, built once as bytes; each read inserts the texts from the message.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from postroom import traces
from postroom.accounts.actors import Actor
from postroom.clock import to_iso
from postroom.events.junk_shape import EventJunk
from postroom.events.notice_subjects import EventCertificate, EventDomain, EventRule, EventService
from postroom.mailbox import attachments, holds
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import (
    NOT_ANALYZED,
    Appointment,
    Document,
    Signal,
    Texts,
    Verdict,
    Verdicts,
)
from postroom.mailbox.holds import Hold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND
from postroom_mail.reading.category import Category

TRACED = b'"traceparent":"'
OF_MESSAGE = "Goes on with the trace (W3C) that the message belongs to."
BODY, FILE, REPLY = b'"body_text":"', b'"parsedText":"', b'"reply_text":"'


class EventAttachment(Struct, rename="camel", frozen=True, kw_only=True):
    filename: str
    content_type: str
    size_bytes: int
    url: str
    parsed_text: str | UnsetType = UNSET
    parsed_text_truncated: bool | UnsetType = UNSET
    extraction_method: str
    infected: str | UnsetType = UNSET
    scanned: bool | UnsetType = UNSET


class EventAttendee(Struct, frozen=True):
    address: str
    name: str
    participation_status: str
    role: str


class EventOccurrence(Struct, frozen=True):
    recurrence_id: str
    start: str
    end: str
    status: str


class EventCalendar(Struct, frozen=True, kw_only=True):
    """The appointment that an email brings, in the names of events."""

    method: str
    uid: str
    summary: str
    start: str
    end: str
    start_at: str | None
    end_at: str | None
    all_day: bool
    time_zone: str
    location: str
    organizer: str
    attendees: list[EventAttendee]
    attendee_count: int
    answer_expected: bool
    recurrence: str
    status: str
    recurrence_id: str
    sequence: int
    ex_dates: list[str]
    occurrences: list[EventOccurrence]
    join_url: str


class EventMessage(Struct, frozen=True):
    """The message that an event is about."""

    # New fields go after `reply_text`: a key from outside, as in `metadata`, must not come before the texts.
    id: str
    sender: str = field(name="from")
    to: str
    subject: str
    body_text: str
    attachments: list[EventAttachment]
    received_at: str
    cc: list[str]
    rfc_message_id: str
    reply_text: str
    automated: bool
    auth: Verdicts | None
    category: Category | None = None
    auto_replyable: bool = False
    verdict: Verdict | None = None
    signals: list[Signal] = []
    metadata: dict[str, str] | UnsetType = UNSET
    codes: list[str] = []
    calendar: EventCalendar | None = None
    analysis: Annotated[Literal["failed"], Meta(description=NOT_ANALYZED)] | UnsetType = UNSET
    traceparent: Annotated[str, Meta(description=OF_MESSAGE)] | UnsetType = UNSET
    junk: EventJunk | None = None


class EventHold(Struct, frozen=True):
    """Why a send waits or waited."""

    state: str
    reasons: list[str]
    content_hash: str
    expires_at: str | None


class EventThread(Struct, frozen=True):
    """What people did with the thread that an event is about. Never the text of a note."""

    assignee_id: str | None
    snoozed_until: str | None
    is_done: bool
    note_id: str | UnsetType = UNSET


class EventCalendarEvent(Struct, frozen=True):
    """The calendar event, or the occurrence of one, that an event is about."""

    id: str
    calendar_id: str
    uid: str
    summary: str
    location: str
    start: str
    end: str
    time_zone: str
    all_day: bool
    recurrence: list[str]
    recurrence_id: str | None
    organizer: str
    status: str
    own_response: str | None
    sequence: int
    message_id: str | None
    verdict: str | None
    attendee: str | UnsetType = UNSET
    response: str | UnsetType = UNSET


class Payload(Struct, frozen=True):
    event: str
    event_id: str
    inbox_id: str
    thread_id: str
    message: EventMessage
    occurred_at: str
    recipient: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    hold: EventHold | UnsetType = UNSET
    actor: Actor | UnsetType = UNSET
    note: str | UnsetType | None = UNSET
    deleted: bool | UnsetType = UNSET  # the message is deleted, with its texts
    domain: EventDomain | UnsetType = UNSET
    certificate: EventCertificate | UnsetType = UNSET
    thread: EventThread | UnsetType = UNSET
    rule: EventRule | UnsetType = UNSET
    calendar_event: EventCalendarEvent | UnsetType = UNSET
    service: EventService | UnsetType = UNSET


class DeliveryFailure(Struct, frozen=True):
    """The outcome of a sent mail for one recipient."""

    recipient: str
    reason: str


class NewEvent(Struct, frozen=True):
    """The content of an event about a message."""

    account_id: str
    pod_id: str
    kind: str
    document: Document
    files: Sequence[Attachment]
    occurred_at: int
    failure: DeliveryFailure | None = None
    hold: Hold | None = None
    actor: Actor | None = None
    own_addresses: Collection[str] = ()  # of its inbox: it is no contact of its own

    @classmethod
    def of(
        cls, inbox: Inbox, kind: str, document: Document, files: Sequence[Attachment], occurred_at: int
    ) -> "NewEvent":
        found = cls(inbox.account_id, inbox.pod_id, kind, document, files, occurred_at)
        return structs.replace(found, own_addresses=inbox.mailboxes)


class SystemNotice(Struct, frozen=True):
    """The content of an event that is about no message; its `message` is empty."""

    account_id: str
    pod_id: str
    kind: str
    occurred_at: int
    inbox_id: str = ""
    reason: str | UnsetType = UNSET
    actor: Actor | UnsetType = UNSET
    domain: EventDomain | UnsetType = UNSET
    certificate: EventCertificate | UnsetType = UNSET
    thread_id: str = ""
    thread: EventThread | UnsetType = UNSET
    rule: EventRule | UnsetType = UNSET
    calendar_event: EventCalendarEvent | UnsetType = UNSET
    service: EventService | UnsetType = UNSET


News = NewEvent | SystemNotice


def of_notice(notice: SystemNotice, event_id: str) -> bytes:
    return msgspec.json.encode(
        Payload(
            event=notice.kind,
            event_id=event_id,
            inbox_id=notice.inbox_id,
            thread_id=notice.thread_id,
            message=no_message(to_iso(notice.occurred_at)),
            occurred_at=to_iso(notice.occurred_at),
            reason=notice.reason,
            actor=notice.actor,
            domain=notice.domain,
            certificate=notice.certificate,
            thread=notice.thread,
            rule=notice.rule,
            calendar_event=notice.calendar_event,
            service=notice.service,
        )
    )


def no_message(received_at: str, message_id: str = "") -> EventMessage:
    """Return a placeholder, so that every event has a message; of an erased one only the id is left."""
    return EventMessage(
        id=message_id,
        sender="",
        to="",
        subject="",
        body_text="",
        attachments=[],
        received_at=received_at,
        cc=[],
        rfc_message_id="",
        reply_text="",
        automated=False,
        auth=None,
    )


def to_stub(news: NewEvent, event_id: str, base_url: str) -> bytes:
    document = news.document
    return msgspec.json.encode(
        Payload(
            event=news.kind,
            event_id=event_id,
            inbox_id=document.inbox_id,
            thread_id=document.thread_id,
            message=_to_message(document, news.files, base_url),
            occurred_at=to_iso(news.occurred_at),
            recipient=UNSET if news.failure is None else news.failure.recipient,
            reason=UNSET if news.failure is None else news.failure.reason,
            hold=UNSET if news.hold is None else _to_hold(news.hold),
            actor=news.actor or UNSET,
            note=UNSET if news.hold is None else news.hold.note,
        )
    )


def _to_hold(hold: Hold) -> EventHold:
    shown = holds.show(hold)
    return EventHold(shown.state, shown.reasons, shown.content_hash, shown.expires_at)


def complete(stub: bytes, texts: Texts, file_texts: Sequence[bytes]) -> bytes:
    """Inserts texts, encoded as JSON. No string of a stub has an unescaped quote, so each key is found."""
    pieces: list[bytes] = []
    end = 0
    keyed = [(BODY, texts.body), *((FILE, text) for text in file_texts), (REPLY, texts.reply)]
    for key, text in keyed:
        begin, end = end, stub.index(key, end) + len(key)
        pieces += (stub[begin:end], text)
    return b"".join((*pieces, stub[end:]))


def without_message(stub: bytes) -> bytes:
    return stub[:-1] + b',"deleted":true}'


def files_with_text(files: Sequence[Attachment]) -> list[int]:
    """Return the indexes of files that have text, in order."""
    return [number for number, file in enumerate(files) if file.parsed_text is not None]


def _to_message(document: Document, files: Sequence[Attachment], base_url: str) -> EventMessage:
    """Return the message. `to` is the inbox for received mail, and the To field for sent mail."""
    return EventMessage(
        id=document.id,
        sender=document.from_addr,
        to=document.to_addr if document.direction == INBOUND else document.header_to,
        subject=document.subject,
        body_text="",
        attachments=[_describe(document.id, file, base_url) for file in files],
        received_at=document.created_at,
        cc=document.cc,
        rfc_message_id=document.rfc_message_id,
        reply_text="",
        automated=document.automated,
        auth=document.auth,
        category=document.category,
        auto_replyable=document.auto_replyable,
        verdict=document.verdict,
        signals=document.signals,
        metadata=document.metadata,
        codes=document.codes,
        calendar=_calendar(document.calendar) if document.calendar is not UNSET else None,
        analysis=document.analysis,
        traceparent=_traceparent(document),
        junk=EventJunk.of(document.junk),
    )


def _traceparent(document: Document) -> str | UnsetType:
    if document.trace_id is UNSET:
        return UNSET
    return traces.of_message(document.trace_id, document.id, document.direction == INBOUND)


def traceparent_of(payload: bytes) -> str:
    """Return the traceparent in the bytes of an event; empty if its message belongs to no trace."""
    if TRACED not in payload:
        return ""
    return _traced.decode(payload).message.traceparent


class _TracedMessage(Struct, frozen=True):
    traceparent: str = ""


class _TracedEvent(Struct, frozen=True):
    message: _TracedMessage = _TracedMessage()


_traced = msgspec.json.Decoder(_TracedEvent)


def _calendar(appointment: Appointment) -> EventCalendar:
    fields = structs.asdict(appointment)
    fields["attendees"] = [EventAttendee(**structs.asdict(each)) for each in appointment.attendees]
    fields["occurrences"] = [EventOccurrence(**structs.asdict(each)) for each in appointment.occurrences]
    return EventCalendar(**fields)


def _describe(message_id: str, file: Attachment, base_url: str) -> EventAttachment:
    return EventAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=base_url + attachments.path(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else "",
        parsed_text_truncated=file.is_text_cut or UNSET,
        extraction_method=file.extraction_method or "unsupported",
        infected=file.infected or UNSET,
        scanned=file.scanned or UNSET,
    )
