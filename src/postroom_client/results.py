"""What calls return. What a server leaves out is empty; what this client does not know is ignored."""

from datetime import datetime
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class Page(Struct, Generic[T], rename="camel", frozen=True):
    data: list[T]
    total: int = 0


class Me(Struct, rename="camel", frozen=True):
    account_id: str
    account_name: str = ""
    plan: str = ""
    key_id: str = ""
    scope: str = "account"
    inbox_id: str | None = None


class Inbox(Struct, rename="camel", frozen=True):
    """`webhook_secret` is shown once, when the webhook is set."""

    id: str
    address: str
    display_name: str | None = None
    created_at: datetime | None = None
    webhook_url: str | None = None
    webhook_secret: str | None = None


class ApiKey(Struct, rename="camel", frozen=True):
    """`token` is shown once, when the key is made."""

    id: str
    name: str = ""
    inbox_id: str | None = None
    token_prefix: str = ""
    last4: str = ""
    created_at: datetime | None = None
    last_used_at: datetime | None = None
    token: str | None = None


class Thread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str = ""
    last_message_at: datetime | None = None
    is_read: bool = False
    message_count: int = 0


class Verdicts(Struct, frozen=True):
    """What SPF, DKIM and DMARC say of the sender."""

    spf: str = "none"
    dkim: str = "none"
    dmarc: str = "none"
    domain: str = ""


class Attachment(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str = "application/octet-stream"
    size_bytes: int = 0
    url: str = ""
    parsed_text: str | None = None
    extraction_method: str | None = None


class Recipient(Struct, rename="camel", frozen=True):
    """How far the delivery to one address has come."""

    address: str
    state: str = ""
    attempts: int = 0
    last_code: int | None = None
    last_reply: str = ""
    next_attempt_at: datetime | None = None


class Message(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    inbox_id: str = ""
    direction: Literal["inbound", "outbound"] = "inbound"
    from_addr: str = ""
    to_addr: str = ""
    header_to: str = ""
    delivery_role: str | None = None
    cc: list[str] = []
    subject: str = ""
    body_text: str = ""
    body_html: str = ""
    attachments: list[Attachment] = []
    status: str = ""
    created_at: datetime | None = None
    rfc_message_id: str = ""
    reply_text: str = ""
    auth: Verdicts | None = None
    automated: bool = False
    new_participant: bool = False
    codes: list[str] = []
    links: list[str] = []
    recipients: list[Recipient] = []
    captured: bool = False


class ThreadMessages(Struct, rename="camel", frozen=True):
    """The messages of a thread, oldest first."""

    thread_id: str
    inbox_id: str
    data: list[Message]
    subject: str = ""
    is_read: bool = False
    total: int = 0
    truncated: bool = False  # cut short: the next page begins behind what was given


class Sent(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    inbox_id: str = ""
    direction: str = "outbound"
    status: str = "pending"
    created_at: datetime | None = None


class AttachmentText(Struct, rename="camel", frozen=True):
    filename: str
    text: str
    content_type: str = ""
    extraction_method: str = ""


class EventMessage(Struct, frozen=True):
    id: str = ""
    sender: str = field(name="from", default="")
    to: str = ""
    subject: str = ""
    body_text: str = ""
    attachments: list[Attachment] = []
    received_at: datetime | None = None
    cc: list[str] = []
    rfc_message_id: str = ""
    reply_text: str = ""
    automated: bool = False
    auth: Verdicts | None = None


class Event(Struct, frozen=True):
    event: str
    event_id: str
    inbox_id: str = ""
    thread_id: str = ""
    message: EventMessage | None = None
    occurred_at: datetime | None = None


class EventPage(Struct, frozen=True):
    """`next` is what to ask for `after`."""

    data: list[Event]
    next: str | None = None


class Suppression(Struct, rename="camel", frozen=True):
    address: str
    type: str = "manual"
    created_at: datetime | None = None


class DnsRecord(Struct, rename="camel", frozen=True):
    """A record to set; `found` is known once the domain was looked up."""

    type: str
    name: str
    value: str
    purpose: str = ""
    required: bool = False
    found: bool | None = None


class Domain(Struct, rename="camel", frozen=True):
    id: str
    domain: str
    status: str = "pending"
    created_at: datetime | None = None
    verified_at: datetime | None = None
    records: list[DnsRecord] = []


class Webhook(Struct, rename="camel", frozen=True):
    """`secret` is shown once, when it is made."""

    url: str
    event_types: list[str] = []
    enabled: bool = True
    created_at: datetime | None = None
    disabled_reason: str | None = None
    secret: str | None = None


class WebhookSecret(Struct, rename="camel", frozen=True):
    secret: str


class WebhookTest(Struct, rename="camel", frozen=True):
    ok: bool
    status: int = 0
    milliseconds: int = 0


class WebhookAttempt(Struct, rename="camel", frozen=True):
    """One try; `answer` is the beginning of what the endpoint said, or why there was no answer."""

    at: datetime | None = None
    status: int | None = None
    milliseconds: int | None = None
    answer: str | None = None


class WebhookDelivery(Struct, rename="camel", frozen=True):
    id: str
    event_id: str = ""
    inbox_id: str = ""
    url: str = ""
    state: str = ""
    attempts: list[WebhookAttempt] = []
    created_at: datetime | None = None
    next_attempt_at: datetime | None = None


class Retried(Struct, frozen=True):
    """How many deliveries go again."""

    retried: int
