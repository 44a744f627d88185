"""The body of a send request, read into an order that is valid on its own."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from postroom import limits
from postroom.errors import BadRequest
from postroom.operations.sending.address_fields import (
    LIST_LIMIT_CHARACTERS,
    LIST_LIMIT_ENTRIES,
    SMALL_LISTS_CHARACTERS,
    characters,
    read_addresses,
    read_reply_to,
)
from postroom.operations.sending.calendar import InvitationBody, read_invitation
from postroom.operations.sending.expecting import (
    ExpectReplyBy,
    FollowUps,
    read_expectation,
    read_follow_ups,
)
from postroom.operations.sending.files import SentFile, SentFiles
from postroom.outward.send_stages import Order, parse_moment, require_files_fit
from postroom.processes import pools
from postroom.queue import idempotency
from postroom_mail.mime.address import Address
from postroom_mail.writing.compose import DraftAttachment
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.template_fields import NAME_CHARACTERS

ID_LIMIT = 100
READ_LIMIT = 10_000  # of what is refused, or not looked at, before it is stored
LISTS = ("to", "cc", "bcc")
FIELDS_LIMIT = 50
FIELD_LIMIT = 10_000
SMALL_TEXT_CHARACTERS = 64 * 1024

AddressList = Annotated[str, Meta(max_length=LIST_LIMIT_CHARACTERS)]
Addresses = Annotated[
    AddressList | Annotated[list[AddressList], Meta(max_length=LIST_LIMIT_ENTRIES)],
    Meta(description="Addresses, or `Name <address>`; separated by commas, or as an array."),
]

Body = Annotated[
    str,
    Meta(
        min_length=1, max_length=limits.BODY_CHARACTERS, description="Plain text, or HTML, which is detected."
    ),
]
BodyHtml = Annotated[
    str,
    Meta(
        max_length=limits.HTML_CHARACTERS,
        description="A separate HTML version, where it must differ from body.",
    ),
]
ThreadId = Annotated[
    str,
    Meta(
        max_length=ID_LIMIT,
        description="Reply in this thread: subject, In-Reply-To, References, the quote and a copy to the last"
        " sender are added.",
    ),
]
IncludeQuote = Annotated[bool, Meta(description="false leaves the quoted copy of the last message out.")]
FromAddress = Annotated[
    str,
    Meta(
        max_length=limits.ADDRESS_CHARACTERS,
        description="Send from this address of the inbox: its own, or an alias. Without it, a reply leaves"
        " from the alias that the email came to, and all else from its own.",
    ),
]
ReplyTo = Annotated[AddressList, Meta(description="Where replies should go.")]
Files = Annotated[SentFiles, Meta(description=f"Files to attach, {limits.ATTACHMENTS_TOGETHER}.")]
Automated = Annotated[bool, Meta(description="Marks the email as automated (Auto-Submitted).")]
ReplyAll = Annotated[
    bool,
    Meta(
        description="In a thread: to Reply-To or the sender of the last received message, with copies"
        " to everyone else it names and to the recipients you add."
    ),
]
ForwardOf = Annotated[
    str,
    Meta(
        max_length=ID_LIMIT,
        description="Forward this message of the inbox with its text and files. A new thread, unless threadId"
        " names one; without subject it is Fwd: and the old one.",
    ),
]
ReplyToMessageId = Annotated[
    str,
    Meta(
        max_length=ID_LIMIT,
        description="Answer this message of the inbox and not the last of its thread: people, quote and"
        " References come from it. Without `to`, to its Reply-To or sender.",
    ),
]
OwnHeaders = Annotated[
    dict[
        Annotated[str, Meta(max_length=limits.HEADER_CHARACTERS)],
        Annotated[str, Meta(max_length=limits.HEADER_CHARACTERS)],
    ],
    Meta(
        max_length=limits.OWN_HEADERS,
        description="Your own header fields: names that begin with X-.",
        examples=[{"X-Order": "7"}],
    ),
]
Metadata = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=limits.METADATA_NAME_CHARACTERS)],
        Annotated[str, Meta(max_length=limits.METADATA_VALUE_CHARACTERS)],
    ],
    Meta(
        max_length=limits.METADATA_ENTRIES,
        description="Stored with the message and shown in its events; never sent.",
    ),
]
SendAt = Annotated[
    str,
    Meta(
        max_length=64,
        description=f"When to send, at most {limits.SEND_AHEAD_DAYS} days ahead, with time zone.",
        examples=["2026-11-14T10:05:00Z"],
        extra_json_schema={"format": "date-time"},
    ),
]
Unsubscribe = Annotated[
    bool,
    Meta(
        description="Each recipient gets a copy with their own unsubscribe link"
        " (List-Unsubscribe, RFC 8058); a click suppresses their address."
    ),
]
UndoSeconds = Annotated[
    int,
    Meta(
        ge=0,
        le=limits.UNDO_SECONDS,
        description="Seconds in which you can still cancel it, before it is sent.",
    ),
]
CalendarField = Annotated[
    InvitationBody,
    Meta(
        description="An appointment with summary, start, end and timeZone: the email becomes an invitation;"
        " location, attendees and recurrence are optional; uid, sequence and method cancel change or cancel"
        " one."
    ),
]

TemplateOf = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.NAME_CHARACTERS,
        description="Name or id of a template of the inbox, for body and subject.",
    ),
]
TemplateFields = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS)],
        Annotated[str, Meta(max_length=FIELD_LIMIT)],
    ],
    Meta(max_length=FIELDS_LIMIT, description="The text for each field of the template."),
]


_own_header = re.compile(r"[Xx]-[!-9;-~]{1,70}")


class SendBody(Struct, rename="camel", frozen=True, omit_defaults=True):
    """Set either `body` or `template`."""

    body: Body | None = None
    to: Annotated[
        Addresses,
        Meta(
            description="Recipients; `Name <address>` is fine."
            f" At most {limits.RECIPIENTS} with cc and bcc; may be absent with replyAll."
        ),
    ] = ""
    subject: (
        Annotated[
            str,
            Meta(
                max_length=READ_LIMIT,
                description=f"1 to {limits.SUBJECT_CHARACTERS} characters; needed without threadId and"
                " forwardOf, ignored in a reply.",
            ),
        ]
        | None
    ) = None
    body_html: BodyHtml | None = None
    thread_id: ThreadId | None = None
    include_quote: IncludeQuote = True
    reply_to: ReplyTo | None = None
    cc: Annotated[Addresses, Meta(description="Recipients of a copy.")] = ""
    bcc: Annotated[Addresses, Meta(description="Recipients of a blind copy.")] = ""
    attachments: Files = []
    automated: Automated = False
    reply_all: ReplyAll = False
    forward_of: ForwardOf | None = None
    headers: OwnHeaders = {}
    metadata: Metadata = {}
    send_at: SendAt | None = None
    undo_seconds: UndoSeconds = 0
    calendar: CalendarField | None = None
    reply_to_message_id: ReplyToMessageId | None = None
    template: TemplateOf | None = None
    fields: TemplateFields = {}
    unsubscribe: Unsubscribe = False
    from_address: FromAddress | None = None
    expect_reply_by: ExpectReplyBy | None = None
    follow_ups: FollowUps = []


class RedirectBody(Struct, rename="camel", frozen=True):
    to: Annotated[
        Addresses, Meta(description=f"Recipients of the unchanged email; at most {limits.RECIPIENTS}.")
    ]


async def to_order(inbox_id: str, key: str, body: SendBody) -> Order:
    if is_small(body):
        return read_and_hash(inbox_id, key, body)
    return await pools.COMPOSING.run(read_and_hash, inbox_id, key, body)


def is_small(body: SendBody) -> bool:
    """Return whether the body can be read in less than a millisecond, whatever it contains."""
    if body.attachments or len(body.body or "") + len(body.body_html or "") > SMALL_TEXT_CHARACTERS:
        return False
    invited = body.calendar.attendees if body.calendar is not None else ""
    lists = (body.to, body.cc, body.bcc, body.reply_to or "", invited)
    return sum(map(characters, lists)) <= SMALL_LISTS_CHARACTERS


def read_and_hash(inbox_id: str, key: str, body: SendBody) -> Order:
    """Read and hash a body, after checking its limits."""
    order = read_order(inbox_id, key, "", body)
    return structs.replace(order, request_hash=hash_body(inbox_id, body))


def read_order(
    inbox_id: str, key: str, request_hash: str, body: SendBody, *, needs_subject: bool = True
) -> Order:
    require_files_fit([len(file.content) for file in body.attachments])
    to, cc, bcc = [read_addresses(name, getattr(body, name)) for name in LISTS]
    require_recipients(body, to, cc, bcc)
    return Order(
        inbox_id=inbox_id,
        idempotency_key=key,
        request_hash=request_hash,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=read_subject(body) if needs_subject or body.subject else "",
        body=require_text(body),
        body_html=body.body_html,
        thread_id=body.thread_id,
        include_quote=body.include_quote,
        reply_to=read_reply_to(body.reply_to),
        is_automated=body.automated,
        files=tuple(
            [DraftAttachment(file.filename, file.media_type, file.content) for file in body.attachments]
        ),
        send_at=None if body.send_at is None else parse_moment(body.send_at),
        undo_seconds=body.undo_seconds,
        reply_all=read_reply_all(body),
        forward_of=body.forward_of,
        headers=read_headers(body.headers),
        metadata=body.metadata,
        calendar=read_invitation(body.calendar),
        reply_to_message_id=body.reply_to_message_id,
        unsubscribe=body.unsubscribe,
        from_address=body.from_address or None,
        expects=read_expectation(body.expect_reply_by),
        nudges=read_follow_ups(body.follow_ups),
    )


def hash_body(inbox_id: str, body: SendBody) -> str:
    """Return the hash of the canonical JSON of the request, and of its files.

    A request keeps its hash if the type of the body gets more fields, or another order of fields.
    """
    bare = structs.replace(body, attachments=[]) if body.attachments else body
    said = msgspec.json.encode(bare, order="sorted")
    files = [part for file in body.attachments for part in parts_of(file)]
    return idempotency.hash_request(inbox_id.encode(), said, *files)


def parts_of(file: SentFile) -> tuple[bytes, ...]:
    """Return the parts to hash. A stored file counts by its name: its content is not read."""
    if file.is_named:
        return (b"named", msgspec.json.encode(file, order="sorted"))
    return (file.filename.encode(), file.media_type.encode(), file.content)


def require_text(body: SendBody) -> str:
    if body.fields and body.template is None:
        raise BadRequest("fields need a template.", field="template")
    if body.body is None:
        raise BadRequest("body is missing: give it, or a template.", field="body")
    return body.body


def require_recipients(
    body: SendBody, to: Sequence[Address], cc: Sequence[Address], bcc: Sequence[Address]
) -> None:
    if not to and not body.reply_all and body.reply_to_message_id is None:
        raise BadRequest("to has no recipient.", field="to")
    if len(to) + len(cc) + len(bcc) > limits.RECIPIENTS:
        raise BadRequest(f"An email can have {limits.RECIPIENTS} recipients.", field="to")


def read_subject(body: SendBody) -> str:
    """Return the subject, or "" where it comes from the thread or the forwarded message."""
    if body.forward_of is None and (body.thread_id or body.reply_to_message_id) is not None:
        return ""
    if body.forward_of is not None and not body.subject:
        return ""
    subject = body.subject or ""
    require_subject(subject)
    return subject


def require_subject(subject: str) -> None:
    if not subject or len(subject) > limits.SUBJECT_CHARACTERS:
        raise BadRequest(f"subject must be 1 to {limits.SUBJECT_CHARACTERS} characters.", field="subject")
    if CONTROL.search(subject):
        raise BadRequest("subject must not have line breaks or control characters.", field="subject")


def read_reply_all(body: SendBody) -> bool:
    if body.reply_all and body.thread_id is None and body.reply_to_message_id is None:
        raise BadRequest("replyAll needs a threadId.", field="threadId")
    if (body.reply_all or body.reply_to_message_id) and body.forward_of is not None:
        raise BadRequest("An email is either a reply to all or a forward.", field="forwardOf")
    return body.reply_all


def read_headers(given: dict[str, str]) -> dict[str, str]:
    """Return the headers. Raise for two that differ only in case: readers disagree about which one counts."""
    if not given:
        return given
    if len({name.lower() for name in given}) < len(given):
        raise BadRequest("headers must not have a field twice.", field="headers")
    for name, value in given.items():
        if not _own_header.fullmatch(name):
            raise BadRequest("headers can have names that begin with X-, without spaces.", field="headers")
        if CONTROL.search(value) or not value.strip() or len(value) > limits.HEADER_CHARACTERS:
            raise BadRequest(
                f"The values of headers are 1 to {limits.HEADER_CHARACTERS} characters"
                " without line breaks or control characters.",
                field="headers",
            )
    return given
