"""Requests and answers of /v0 about mail."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from postroom import limits
from postroom.operations.inboxes import Metadata
from postroom.operations.sending.send import Addresses, OwnHeaders
from postroom.web.agentmail.paging import collect

Limit = Annotated[int, Meta(ge=1)]
Status = Literal["active", "paused"]
ClientId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9._~-]+$")]
Words = Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=100)]
OneOrMore = Annotated[str, Meta(max_length=1000)] | Words
Text = Annotated[str, Meta(max_length=limits.BODY_CHARACTERS)]
Html = Annotated[str, Meta(max_length=limits.HTML_CHARACTERS)]


class PageQuery(Struct, frozen=True):
    limit: Limit = limits.PAGE
    page_token: str | None = None
    ascending: bool | None = None


class TimeQuery(PageQuery, frozen=True):
    before: str | None = None
    after: str | None = None


class SearchQuery(TimeQuery, frozen=True, kw_only=True):
    q: Annotated[str, Meta(min_length=2, max_length=256)]


class DraftQuery(TimeQuery, frozen=True):
    labels: Words = []
    collect = staticmethod(collect)


class MailQuery(DraftQuery, frozen=True):
    include_spam: bool | None = None
    include_blocked: bool | None = None
    include_unauthenticated: bool | None = None
    include_trash: bool | None = None
    subject: Words = []


class MessageQuery(MailQuery, frozen=True):
    from_: Words = field(default=[], name="from")
    to: Words = []


class ThreadQuery(MailQuery, frozen=True):
    senders: Words = []
    recipients: Words = []


class MessagesOfThreadQuery(PageQuery, frozen=True):
    limit: Limit = 100


class NewInbox(Struct, frozen=True):
    username: str | None = None
    domain: str | None = None
    display_name: str | None = None
    client_id: ClientId | None = None
    status: Status | None = None
    metadata: Metadata | None = None


class InboxChange(Struct, frozen=True):
    display_name: str | UnsetType | None = UNSET
    status: Status | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET


class Inbox(Struct, frozen=True, omit_defaults=True):
    pod_id: str
    inbox_id: str
    email: str
    created_at: str
    updated_at: str
    display_name: str | None = None
    client_id: str | None = None
    status: str | None = None
    metadata: dict[str, str | int | float | bool] | None = None


class NewFile(Struct, frozen=True):
    filename: Annotated[str, Meta(max_length=limits.FILENAME_CHARACTERS)] | None = None
    content_type: Annotated[str, Meta(max_length=limits.CONTENT_TYPE_CHARACTERS)] | None = None
    content_disposition: Literal["attachment", "inline"] | None = None
    content_id: str | None = None
    content: bytes | None = None
    url: str | None = None


NewFiles = Annotated[list[NewFile], Meta(max_length=limits.ATTACHMENTS)]


class Written(Struct, frozen=True, omit_defaults=True):
    to: Addresses | None = None
    cc: Addresses | None = None
    bcc: Addresses | None = None
    reply_to: Addresses | None = None
    subject: Annotated[str, Meta(max_length=limits.SUBJECT_CHARACTERS)] | None = None
    text: Text | None = None
    html: Html | None = None
    attachments: NewFiles | None = None
    labels: OneOrMore | None = None


class NewMail(Written, frozen=True):
    """For a send, a reply or a forward; each uses some of these."""

    headers: OwnHeaders | None = None
    reply_all: bool | None = None
    track_opens: bool | None = None


class LabelChange(Struct, frozen=True):
    add_labels: OneOrMore | None = None
    remove_labels: OneOrMore | None = None


class MessageIds(Struct, frozen=True):
    message_ids: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(min_length=1, max_length=500)]


class LabelChanges(LabelChange, frozen=True, kw_only=True):
    message_ids: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(min_length=1, max_length=50)]


class ShownFile(Struct, frozen=True, omit_defaults=True):
    attachment_id: str
    size: int
    filename: str | None = None
    content_type: str | None = None
    download_url: str | None = None
    expires_at: str | None = None


class Shown(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Common to messages and threads."""

    inbox_id: str
    thread_id: str
    labels: list[str]
    timestamp: str
    subject: str | None = None
    preview: str | None = None
    attachments: list[ShownFile] | None = None
    size: int
    created_at: str
    updated_at: str
    highlights: dict[str, list[str]] | None = None


class Message(Shown, frozen=True, kw_only=True):
    """Lists leave out the texts."""

    message_id: str
    from_: str = field(name="from")
    to: list[str]
    cc: list[str] | None = None
    bcc: list[str] | None = None
    reply_to: list[str] | None = None
    text: str | None = None
    html: str | None = None
    extracted_text: str | None = None
    in_reply_to: str | None = None
    references: list[str] | None = None
    headers: dict[str, str] | None = None


class Thread(Shown, frozen=True, kw_only=True):
    received_timestamp: str | None = None
    sent_timestamp: str | None = None
    senders: list[str]
    recipients: list[str]
    last_message_id: str
    message_count: int


class SentMessage(Struct, frozen=True):
    message_id: str
    thread_id: str


class NewDraft(Written, frozen=True):
    in_reply_to: Annotated[str, Meta(max_length=1000)] | None = None
    reply_all: bool | None = None
    forward_of: Annotated[str, Meta(max_length=1000)] | None = None
    send_at: str | None = None
    client_id: ClientId | None = None


class DraftChange(LabelChange, frozen=True):
    to: Addresses | UnsetType | None = UNSET
    cc: Addresses | UnsetType | None = UNSET
    bcc: Addresses | UnsetType | None = UNSET
    reply_to: Addresses | UnsetType | None = UNSET
    subject: Annotated[str, Meta(max_length=limits.SUBJECT_CHARACTERS)] | UnsetType | None = UNSET
    text: Text | UnsetType | None = UNSET
    html: Html | UnsetType | None = UNSET
    send_at: str | UnsetType | None = UNSET
    add_attachments: NewFiles | None = None
    remove_attachments: Words | None = None


Page = dict[str, Any]


def to_builtins(shown: Struct) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(shown)
    return built
