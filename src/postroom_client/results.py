"""What calls return. What a server leaves out is empty; what this client does not know is ignored."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field

T = TypeVar("T")
EVERY_PERMISSION = ("read", "draft", "send", "approve", "manage")
FLAGGED = frozenset({"suspicious", "malicious"})


class Page(Struct, Generic[T], rename="camel", frozen=True):
    """`truncated`: it ended early because of its size; the next one begins behind what was given."""

    data: list[T]
    total: int = 0
    truncated: bool = False


class KeyScope(Struct, rename="camel", frozen=True):
    pod_id: str | None = None
    inbox_id: str | None = None


class Me(Struct, rename="camel", frozen=True):
    account_id: str
    customer_id: str = ""
    account_name: str = ""
    plan: str = ""
    key_id: str = ""
    scope: str = "account"
    inbox_id: str | None = None
    pod_id: str | None = None
    permissions: list[str] = field(default_factory=lambda: list(EVERY_PERMISSION))
    api_key_scope: KeyScope | str = "account"
    mcp_scopes: list[str] | None = None


class OverPerDay(Struct, rename="camel", frozen=True):
    """A rule of approval: what goes beyond so many sends of an inbox a day waits."""

    over_per_day: int


class ApprovalRules(Struct, rename="camel", frozen=True):
    """Which sends wait for a person: `always`, `strangers`, `attachments`, `links`, `risk`, over a count."""

    when: list[str | OverPerDay] = []
    expires_hours: int = 72
    reviewers: list[str] = []


class Budget(Struct, rename="camel", frozen=True, omit_defaults=True):
    """How much an inbox or a key may send, where that is less than the service allows."""

    per_minute: int | None = None
    per_day: int | None = None
    cold_per_day: int | None = None


MetadataValue = str | int | float | bool


class Inbox(Struct, rename="camel", frozen=True):
    """`webhook_secret` is shown once, when the webhook is set."""

    id: str
    address: str
    display_name: str | None = None
    created_at: datetime | None = None
    webhook_url: str | None = None
    webhook_secret: str | None = None
    pod_id: str | None = None
    approval: ApprovalRules | None = None
    limits: Budget | None = None
    metadata: dict[str, MetadataValue] = {}
    retention_days: int | None = None


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
    pod_id: str | None = None
    permissions: list[str] = []
    expires_at: datetime | None = None
    created_by: str | None = None
    approval: ApprovalRules | None = None
    limits: Budget | None = None


class Thread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str = ""
    last_message_at: datetime | None = None
    is_read: bool = False
    message_count: int = 0
    labels: list[str] = []
    related_thread_ids: list[str] = []
    created_at: datetime | None = None


class Verdicts(Struct, frozen=True):
    """What SPF, DKIM and DMARC say of the sender."""

    spf: str = "none"
    dkim: str = "none"
    dmarc: str = "none"
    domain: str = ""


class LinkDetail(Struct, frozen=True):
    """`purpose` is verify, signin, unsubscribe or other."""

    url: str
    purpose: str = "other"


class Signal(Struct, frozen=True):
    """A rule that speaks against a mail. `reason` is the server's; `excerpt` are words of the mail."""

    name: str
    weight: int = 0
    reason: str = ""
    excerpt: str = ""


class Attendee(Struct, rename="camel", frozen=True):
    """`participation_status` is accepted, declined, tentative, needs-action, delegated, or empty."""

    address: str
    name: str = ""
    participation_status: str = ""
    role: str = ""


class Occurrence(Struct, rename="camel", frozen=True):
    """One of a series that differs from it."""

    recurrence_id: str = ""
    start: str = ""
    end: str = ""
    status: str = ""


class Appointment(Struct, rename="camel", frozen=True):
    """`start` and `end` are as written; the moments are known if their zone is.

    `recurrence_id` names the one occurrence of a series that it is about.
    """

    summary: str = ""
    start: str = ""
    end: str = ""
    start_at: datetime | None = None
    end_at: datetime | None = None
    all_day: bool = False
    time_zone: str = ""
    location: str = ""
    organizer: str = ""
    attendees: list[Attendee] = []
    attendee_count: int = 0
    answer_expected: bool = False
    recurrence: str = ""
    status: str = ""
    method: str = ""
    uid: str = ""
    recurrence_id: str = ""
    sequence: int = 0
    ex_dates: list[str] = []
    occurrences: list[Occurrence] = []
    join_url: str = ""

    @property
    def news(self) -> str:
        """Who has answered and how, or what was cancelled; "" for an invitation."""
        of = f" (the occurrence of {self.recurrence_id} alone)" if self.recurrence_id else ""
        if self.method == "REPLY" and self.attendees:
            who = self.attendees[0]
            return f"{who.name or who.address}: {who.participation_status or 'no answer'}{of}"
        return f"cancelled{of}" if "CANCELLED" in (self.status, f"{self.method}LED") else ""


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


class Actor(Struct, frozen=True):
    """Who did something: a key, a session, a reviewer or the server."""

    type: str = ""
    id: str = ""
    name: str = ""


class Hold(Struct, rename="camel", frozen=True):
    """Why a send waits or waited, and what was decided."""

    state: str = ""
    reasons: list[str] = []
    content_hash: str = ""
    expires_at: datetime | None = None
    send_at: datetime | None = None
    decided_at: datetime | None = None
    decided_by: Actor | None = None
    note: str | None = None


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
    link_details: list[LinkDetail] = []
    category: str | None = None
    auto_replyable: bool = False
    verdict: str | None = ""  # None: not examined yet; "": the server does not say
    signals: list[Signal] = []
    calendar: Appointment | None = None
    attachments_read: bool = True
    recipients: list[Recipient] = []
    captured: bool = False
    hold: Hold | None = None
    metadata: dict[str, str] = {}
    blocked: bool = False  # stopped by a policy
    parse_error: str | None = None

    @property
    def is_examined(self) -> bool:
        """Whether its sender was judged and its files were read."""
        return self.direction == "outbound" or (self.verdict is not None and self.attachments_read)

    @property
    def is_flagged(self) -> bool:
        return self.verdict in FLAGGED


class SearchResult(Struct, rename="camel", frozen=True):
    """A message that was found, the parts of it that matched, and a piece of the first of them."""

    message: Message
    matched: list[str] = []
    snippet: str = ""


class SearchPage(Struct, frozen=True):
    """`next` is the cursor of the page behind."""

    data: list[SearchResult]
    next: str | None = None


class UsageGroup(Struct, rename="camel", frozen=True):
    """`group` is a day, or the id of an inbox or a pod; `stored_bytes` is what was kept at its end."""

    group: str
    received: int = 0
    sent: int = 0
    failed: int = 0
    bounced: int = 0
    complained: int = 0
    held: int = 0
    blocked: int = 0
    stored_bytes: int = 0


class Usage(Struct, frozen=True):
    data: list[UsageGroup]
    first: str = field(name="from", default="")
    last: str = field(name="to", default="")


class ThreadMessages(Struct, rename="camel", frozen=True):
    """The messages of a thread, oldest first unless asked otherwise."""

    thread_id: str
    inbox_id: str
    data: list[Message]
    subject: str = ""
    is_read: bool = False
    total: int = 0
    truncated: bool = False  # cut short: the next page begins behind what was given
    related_thread_ids: list[str] = []


class Sent(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    inbox_id: str = ""
    direction: str = "outbound"
    status: str = "pending"
    created_at: datetime | None = None
    provider_message_id: str = ""
    hold: Hold | None = None
    message_id: str = ""


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
    category: str | None = None
    auto_replyable: bool = False
    verdict: str | None = ""
    signals: list[Signal] = []
    metadata: dict[str, str] = {}
    codes: list[str] = []
    calendar: dict[str, Any] | None = None


class EventHold(Struct, frozen=True):
    """Why a send waits or waited."""

    state: str = ""
    reasons: list[str] = []
    content_hash: str = ""
    expires_at: datetime | None = None


class EventActor(Struct, frozen=True):
    """Who decided."""

    type: str = ""
    id: str | None = None
    name: str | None = None


class Event(Struct, frozen=True):
    """`recipient` and `reason` tell what became of a mail, `hold`, `actor` and `note` what was decided."""

    event: str
    event_id: str
    inbox_id: str = ""
    thread_id: str = ""
    message: EventMessage | None = None
    occurred_at: datetime | None = None
    recipient: str | None = None
    reason: str | None = None
    hold: EventHold | None = None
    actor: EventActor | None = None
    note: str | None = None
    deleted: bool = False


class EventPage(Struct, frozen=True):
    """`next` is what to ask for `after`."""

    data: list[Event]
    next: str | None = None
    truncated: bool = False
