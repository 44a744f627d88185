"""The body of a draft: the fields of a send, any of which may be missing, each valid by itself."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from postroom.accounts.actors import Actor
from postroom.clock import to_iso
from postroom.fields import Timestamp, Truncated
from postroom.mailbox.drafts import KeptDraft, KeptFile
from postroom.outward.send_stages import parse_moment
from postroom.web.interface.bodies import send_body
from postroom.web.interface.bodies.address_fields import read_addresses, read_reply_to
from postroom.web.interface.bodies.calendar_body import InvitationBody, read_invitation
from postroom.web.interface.bodies.uploads import LISTS, SentFiles
from postroom.web.requests.request_body import explain


class DraftBody(Struct, rename="camel", frozen=True):
    """In a change null clears, and given attachments replace the old ones."""

    to: Annotated[send_body.Addresses, Meta(description="Recipients.")] | UnsetType | None = UNSET
    body: send_body.Body | UnsetType | None = UNSET
    subject: (
        Annotated[str, Meta(max_length=send_body.READ_LIMIT, description="The subject.")] | UnsetType | None
    ) = UNSET
    body_html: send_body.BodyHtml | UnsetType | None = UNSET
    thread_id: send_body.ThreadId | UnsetType | None = UNSET
    include_quote: send_body.IncludeQuote | UnsetType | None = UNSET
    reply_to: send_body.ReplyTo | UnsetType | None = UNSET
    cc: Annotated[send_body.Addresses, Meta(description="Recipients of a copy.")] | UnsetType | None = UNSET
    bcc: (
        Annotated[send_body.Addresses, Meta(description="Recipients of a blind copy.")] | UnsetType | None
    ) = UNSET
    attachments: send_body.Files | UnsetType | None = UNSET
    automated: send_body.Automated | UnsetType | None = UNSET
    reply_all: send_body.ReplyAll | UnsetType | None = UNSET
    forward_of: send_body.ForwardOf | UnsetType | None = UNSET
    headers: send_body.OwnHeaders | UnsetType | None = UNSET
    metadata: send_body.Metadata | UnsetType | None = UNSET
    send_at: send_body.SendAt | UnsetType | None = UNSET
    undo_seconds: send_body.UndoSeconds | UnsetType | None = UNSET
    calendar: send_body.CalendarField | UnsetType | None = UNSET
    reply_to_message_id: send_body.ReplyToMessageId | UnsetType | None = UNSET
    template: send_body.TemplateOf | UnsetType | None = UNSET
    fields: send_body.TemplateFields | UnsetType | None = UNSET
    unsubscribe: send_body.Unsubscribe | UnsetType | None = UNSET


Version = Annotated[int, Meta(ge=1, description="The version you saw: another one is 409 `draft_changed`.")]


class DraftChange(DraftBody, rename="camel", frozen=True):
    """`version` may also be given in If-Match."""

    version: Version | UnsetType = UNSET


class DraftToSend(Struct, frozen=True):
    """`version` may also be given in If-Match."""

    version: Version | UnsetType = UNSET


class NewFiles(Struct, rename="camel", frozen=True):
    attachments: Annotated[SentFiles, Meta(min_length=1)] = []


class ShownFile(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    size_bytes: int


class ShownDraft(Struct, rename="camel", frozen=True, kw_only=True):
    """What is missing is null or empty."""

    id: str
    version: int
    inbox_id: str
    to: list[str] = []
    cc: list[str] = []
    bcc: list[str] = []
    subject: str | None = None
    body: str | None = None
    body_html: str | None = None
    thread_id: str | None = None
    include_quote: bool = True
    reply_to: str | None = None
    reply_all: bool = False
    forward_of: str | None = None
    reply_to_message_id: str | None = None
    automated: bool = False
    headers: dict[str, str] = {}
    metadata: dict[str, str] = {}
    send_at: str | None = None
    scheduled: Annotated[bool, Meta(description="It is sent automatically at `sendAt`.")] = False
    undo_seconds: int = 0
    unsubscribe: bool = False
    calendar: InvitationBody | None = None
    attachments: list[ShownFile]
    created_by: Actor
    created_at: Timestamp
    updated_at: Timestamp


class DraftPage(Struct, rename="camel", frozen=True):
    data: list[ShownDraft]
    total: int
    truncated: Truncated | UnsetType = UNSET


def read_fields(body: DraftBody) -> dict[str, Any]:
    """The given fields, by their names in the interface and validated; None clears a field."""
    given: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(body, attachments=UNSET))
    given.pop("version", None)
    for name in LISTS:
        if given.get(name) is not None:
            given[name] = [str(address) for address in read_addresses(name, given[name])]
    if given.get("subject") is not None:
        send_body.require_subject(given["subject"])
    if given.get("sendAt") is not None:
        parse_moment(given["sendAt"])
    read_reply_to(given.get("replyTo"))
    send_body.read_headers(given.get("headers") or {})
    if isinstance(body.calendar, InvitationBody):
        read_invitation(body.calendar)
    return given


def to_send_body(draft: KeptDraft) -> send_body.SendBody:
    """Raises an error that names a missing field. The files of the draft are not in it."""
    try:
        return msgspec.json.decode(draft.fields, type=send_body.SendBody)
    except msgspec.ValidationError as error:
        raise explain(error) from None


def show(draft: KeptDraft, files: list[KeptFile]) -> ShownDraft:
    return msgspec.convert(
        {
            **msgspec.json.decode(draft.fields),
            "id": draft.id,
            "version": draft.version,
            "inboxId": draft.inbox_id,
            "attachments": [
                {"filename": file.filename, "contentType": file.content_type, "sizeBytes": file.size_bytes}
                for file in files
            ],
            "scheduled": draft.due_at is not None and draft.failure is None,
            "createdBy": msgspec.to_builtins(draft.actor),
            "createdAt": to_iso(draft.created_at),
            "updatedAt": to_iso(draft.updated_at),
        },
        ShownDraft,
    )
