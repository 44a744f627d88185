"""What requests carry: the types of bodies and queries."""

import re
from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from postroom.accounts import names
from postroom.accounts.reach import Reach
from postroom.clock import from_iso
from postroom.errors import (
    BadRequest,
)
from postroom.events import kinds
from postroom.events.events import Filter
from postroom.mailbox import inboxes
from postroom.outward.orders import require_ahead

OFFSET_LIMIT = 2**53
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
LISTED = r"^[\w.,-]*$"
INBOXES_OF_A_FILTER = 50

# Patterns are only described here: the nouns check them, and say in words what is wrong.
DisplayName = Annotated[
    str,
    Meta(
        max_length=names.MAX_CHARACTERS,
        description="The name that From shows.",
        extra_json_schema={"pattern": names.PATTERN},
    ),
]
MailboxName = Annotated[
    str,
    Meta(
        description="The part of the address before the @.",
        examples=["invoices", "support-eu"],
        extra_json_schema={"pattern": inboxes.MAILBOX_NAME},
    ),
]


class NewInbox(Struct, rename="camel", frozen=True):
    mailbox_name: MailboxName
    display_name: DisplayName | None = None
    domain: Annotated[str, Meta(description="A verified domain of the account.")] | None = None


class InboxChange(Struct, rename="camel", frozen=True):
    display_name: DisplayName | UnsetType | None = UNSET
    webhook_url: str | UnsetType | None = UNSET


class NewKey(Struct, rename="camel", frozen=True):
    name: Annotated[
        str,
        Meta(
            max_length=names.MAX_CHARACTERS,
            examples=["ci-runner"],
            extra_json_schema={"pattern": names.PATTERN},
        ),
    ] = ""


EventType = Annotated[str, Meta(extra_json_schema={"enum": list(kinds.KINDS)})]
Limit = Annotated[int, Meta(ge=1, description="Page size; above 100 counts as 100.")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_LIMIT, description="How many to skip.")]


class Page(Struct, frozen=True):
    limit: Limit = 50
    offset: Offset = 0


class NewWebhook(Struct, rename="camel", frozen=True):
    url: Annotated[str, Meta(examples=["https://example.com/hooks/mail"])]
    event_types: Annotated[list[EventType], Meta(max_length=20)] | None = None
    secret: Annotated[str, Meta(min_length=16, max_length=200, pattern="^[\\x21-\\x7e]+$")] | None = None


class DeliveryQuery(Struct, rename="camel", frozen=True):
    state: Literal["pending", "delivered", "failed"] | None = None
    limit: Limit = 50
    offset: Offset = 0


class RetryFailed(Struct, frozen=True):
    since: Annotated[datetime, Meta(tz=True, description="Deliveries made since this moment.")]


class WaitQuery(Struct, frozen=True):
    timeout: Annotated[float, Meta(ge=0, le=120, description="Seconds to wait.")] = 60
    after: Annotated[str, Meta(description="An event or message id to start behind.")] | None = None
    sender: Annotated[str, Meta(description="Part of the sender.")] = field(default="", name="from")
    subject: Annotated[str, Meta(description="Part of the subject.")] = ""
    thread_id: str = ""


class NewSuppression(Struct, frozen=True):
    address: Annotated[str, Meta(examples=["someone@example.com"])]


class NewDomain(Struct, frozen=True):
    domain: Annotated[str, Meta(examples=["mail.example.com"])]


class ThreadQuery(Struct, frozen=True):
    is_read: Annotated[bool, Meta(description="false gives the unread ones.")] | None = None
    is_read_alias: bool | None = field(default=None, name="isRead")
    limit: Limit = 50
    offset: Offset = 0

    @property
    def flag(self) -> bool | None:
        return self.is_read_alias if self.is_read is None else self.is_read


class ThreadChange(Struct, frozen=True):
    is_read: bool | UnsetType = UNSET
    is_read_alias: bool | UnsetType = field(default=UNSET, name="isRead")

    @property
    def flag(self) -> bool:
        flag = self.is_read_alias if self.is_read is UNSET else self.is_read
        if flag is UNSET:
            raise BadRequest("is_read is missing: send true or false.", field="is_read")
        return flag


class MessageQuery(Struct, frozen=True):
    direction: Literal["inbound", "outbound"] | None = None
    limit: Limit = 50
    offset: Offset = 0


class EventQuery(Struct, frozen=True):
    after: Annotated[str, Meta(description="The last event that you have.")] | None = None
    limit: Limit = 50
    wait: Annotated[float, Meta(ge=0, le=60, description="Seconds to hold on for an event.")] = 0
    inbox_ids: Annotated[
        str, Meta(pattern=LISTED, description="Only of these inboxes, separated by commas.")
    ] = ""
    event_types: Annotated[
        str, Meta(pattern=LISTED, description="Only of these kinds, separated by commas.")
    ] = ""

    def wanted(self, reach: Reach) -> Filter:
        asked = frozenset(self.inbox_ids.split(",")) - {""}
        types = frozenset(self.event_types.split(",")) - {""}
        kinds.require_known(types, "event_types")
        if len(asked) > INBOXES_OF_A_FILTER:
            raise BadRequest(f"inbox_ids can name {INBOXES_OF_A_FILTER} inboxes.", field="inbox_ids")
        return Filter(reach, asked, types)


class Boundary(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[str, Meta(description="Of this inbox alone.")] | None = None
    pod_id: Annotated[str, Meta(description="Of this pod alone: its id or clientId.")] | None = None


class ApprovalQuery(Struct, rename="camel", frozen=True):
    state: Literal["held", "scheduled", "approved", "released", "rejected", "expired", "cancelled"] = "held"
    inbox_id: Annotated[str, Meta(description="Of this inbox alone.")] | None = None
    pod_id: Annotated[str, Meta(description="Of this pod alone: its id or clientId.")] | None = None
    limit: Limit = 50
    offset: Offset = 0


Note = Annotated[str, Meta(max_length=1000, description="Why; kept, and shown in the event.")]


class Approve(Struct, rename="camel", frozen=True):
    content_hash: Annotated[str, Meta(description="Of the content that was seen, from `hold`.")]
    note: Note | None = None


class Reject(Struct, frozen=True):
    note: Note | None = None


class MessageChange(Struct, rename="camel", frozen=True):
    send_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

    def moment(self, now: int) -> int:
        return read_moment(self.send_at, now)


def read_moment(value: str, now: int) -> int:
    moment = parse_moment(value)
    require_ahead(moment, now)
    return moment


def parse_moment(value: str) -> int:
    """RFC 3339 with a zone; whether it lies ahead is another question."""
    try:
        if not _MOMENT.fullmatch(value):
            raise ValueError(value)
        return from_iso(value.upper())
    except (ValueError, OverflowError):
        raise BadRequest(
            "sendAt must be a moment with its zone, such as 2026-11-15T09:00:00Z.", field="sendAt"
        ) from None


DOMAIN_NAME = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
