"""What requests carry: the types of bodies and queries."""

import re
from datetime import date, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from postroom.accounts import names, permissions, pods
from postroom.accounts.reach import Reach
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.clock import from_iso
from postroom.errors import (
    BadRequest,
)
from postroom.events import kinds
from postroom.events.events import EventChoice
from postroom.mailbox import inboxes, labels
from postroom.outward.orders import require_ahead

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
OFFSET_LIMIT = 2**53
USAGE_DAYS, USAGE_MAX_DAYS = 30, 366
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FIRST_DAY = date(1970, 1, 1).toordinal()
_LISTED = re.compile(r"[\w.,-]*")
INBOXES_OF_A_FILTER = 50
SOME_INBOXES = rf"^[0-9a-z_]*(,[0-9a-z_]+){{0,{INBOXES_OF_A_FILTER - 1}}}$"
SOME_KINDS = "^(({kinds})(,({kinds}))*)?$".format(kinds="|".join(map(re.escape, kinds.KINDS)))

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


Name = Annotated[
    str,
    Meta(
        max_length=names.MAX_CHARACTERS,
        description="A name for people.",
        examples=["ci-runner"],
        extra_json_schema={"pattern": names.PATTERN},
    ),
]
PodId = Annotated[str, Meta(description="The id of a pod, or its clientId.")]
RetentionDays = Annotated[
    int, Meta(ge=1, le=3650, description="Days that mail is kept; older mail is deleted.")
]
Permission = Annotated[str, Meta(extra_json_schema={"enum": list(permissions.ALL)})]
Moment = Annotated[datetime, Meta(tz=True, examples=["2026-11-14T10:05:00Z"])]
OwnWebhook = Annotated[str, Meta(description="A webhook of the inbox's own, instead of the account's.")]


class NewInbox(Struct, rename="camel", frozen=True):
    mailbox_name: MailboxName
    display_name: DisplayName | None = None
    domain: Annotated[str, Meta(description="A verified domain of the account.")] | None = None
    pod_id: PodId | None = None
    webhook_url: OwnWebhook | None = None


class InboxChange(Struct, rename="camel", frozen=True):
    display_name: DisplayName | UnsetType | None = UNSET
    webhook_url: OwnWebhook | UnsetType | None = UNSET
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    metadata: (
        Annotated[dict[str, str], Meta(description="Texts of your own by name, at most 20.")]
        | UnsetType
        | None
    ) = UNSET
    retention_days: RetentionDays | UnsetType | None = UNSET


class AccountChange(Struct, rename="camel", frozen=True):
    name: Name | UnsetType = UNSET
    approval: Approval | UnsetType | None = UNSET
    retention_days: RetentionDays | UnsetType | None = UNSET


class NewPod(Struct, rename="camel", frozen=True):
    client_id: (
        Annotated[
            str,
            Meta(description="An id of your own, unique.", extra_json_schema={"pattern": pods.CLIENT_ID}),
        ]
        | None
    ) = None
    name: Name | None = None


class PodChange(Struct, rename="camel", frozen=True):
    name: Name | UnsetType | None = UNSET
    approval: Approval | UnsetType | None = UNSET


class NewKey(Struct, rename="camel", frozen=True):
    name: Name = ""
    permissions: (
        Annotated[
            list[Permission],
            Meta(min_length=1, description="What the key may do; all that its maker may by default."),
        ]
        | None
    ) = None
    expires_at: Annotated[Moment, Meta(description="When the key ends; never by default.")] | None = None


class KeyChange(Struct, rename="camel", frozen=True):
    name: Name | UnsetType = UNSET
    permissions: (
        Annotated[list[Permission], Meta(min_length=1, description="Fewer than it has.")] | UnsetType
    ) = UNSET
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    expires_at: Annotated[Moment, Meta(description="Sooner than it ends now.")] | UnsetType = UNSET


EventType = Annotated[str, Meta(extra_json_schema={"enum": list(kinds.KINDS)})]
Limit = Annotated[int, Meta(ge=1, description="Page size; above 100 counts as 100.")]
Offset = Annotated[int, Meta(ge=0, le=OFFSET_LIMIT, description="How many to skip.")]


class PageQuery(Struct, frozen=True):
    limit: Limit = 50
    offset: Offset = 0


class NewWebhook(Struct, rename="camel", frozen=True):
    url: Annotated[
        str, Meta(description="Where to post events.", examples=["https://example.com/hooks/mail"])
    ]
    event_types: (
        Annotated[
            list[EventType],
            Meta(max_length=20, description="Kinds of events to post; message.received by default."),
        ]
        | None
    ) = None
    secret: (
        Annotated[
            str,
            Meta(
                min_length=16,
                max_length=200,
                pattern="^[\\x21-\\x7e]+$",
                description="The secret that signs; a new one by default.",
            ),
        ]
        | None
    ) = None


class DeliveryQuery(Struct, rename="camel", frozen=True):
    state: (
        Annotated[Literal["pending", "delivered", "failed"], Meta(description="Only these; all by default.")]
        | None
    ) = None
    limit: Limit = 50
    offset: Offset = 0


def to_moment(given: datetime | None) -> int | None:
    """In milliseconds."""
    return None if given is None else int(given.timestamp() * 1000)


# In a query a number would be read as a moment as well.
AskedMoment = Annotated[
    str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-14T10:05:00Z"])
]


def read_asked(asked: str | None, field: str) -> int | None:
    try:
        return None if asked is None else to_moment(msgspec.convert(asked, Moment))
    except msgspec.ValidationError:
        raise BadRequest(
            f"{field} must be a moment with its zone: 2026-11-14T10:05:00Z.", field=field
        ) from None


class RetryFailed(Struct, frozen=True):
    since: Annotated[datetime, Meta(tz=True, description="Deliveries made since this moment.")]


class WaitQuery(Struct, frozen=True):
    timeout: Annotated[float, Meta(ge=0, le=120, description="Seconds to wait.")] = 60
    after: Annotated[str, Meta(description="An event or message id to start behind.")] | None = None
    sender: Annotated[str, Meta(description="Part of the sender.")] = field(default="", name="from")
    subject: Annotated[str, Meta(description="Part of the subject.")] = ""
    thread_id: Annotated[str, Meta(description="Only in this thread.")] = ""
    q: Annotated[str, Meta(description="Only what answers this search.")] = ""


class NewSuppression(Struct, frozen=True):
    address: Annotated[
        str, Meta(description="The address that gets no mail any more.", examples=["someone@example.com"])
    ]


class NewDomain(Struct, rename="camel", frozen=True):
    domain: Annotated[str, Meta(description="Its name.", examples=["mail.example.com"])]
    pod_id: PodId | None = None


Label = Annotated[str, Meta(max_length=labels.MAX_CHARACTERS, description="Only threads with this label.")]
NewLabels = Annotated[
    list[Annotated[str, Meta(extra_json_schema={"pattern": labels.PATTERN})]], Meta(max_length=100)
]
InboxFilter = Annotated[str, Meta(description="Only of this inbox.")]
PodFilter = Annotated[str, Meta(description="Only of this pod, by its id or client id.")]


class ThreadQuery(Struct, frozen=True):
    is_read: Annotated[bool, Meta(description="false gives the unread ones.")] | None = None
    is_read_alias: bool | None = field(default=None, name="isRead")
    label: Label | None = None
    limit: Limit = 50
    offset: Offset = 0

    @property
    def flag(self) -> bool | None:
        return self.is_read_alias if self.is_read is None else self.is_read


class ThreadsQuery(Struct, frozen=True):
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    is_read: Annotated[bool, Meta(description="false gives the unread ones.")] | None = None
    is_read_alias: bool | None = field(default=None, name="isRead")
    label: Label | None = None
    limit: Limit = 50
    offset: Offset = 0

    @property
    def flag(self) -> bool | None:
        return self.is_read_alias if self.is_read is None else self.is_read


class ThreadChange(Struct, frozen=True):
    is_read: Annotated[bool, Meta(description="false marks it unread.")] | UnsetType = UNSET
    is_read_alias: bool | UnsetType = field(default=UNSET, name="isRead")
    add_labels: NewLabels = field(default_factory=list, name="addLabels")
    remove_labels: NewLabels = field(default_factory=list, name="removeLabels")

    @property
    def flag(self) -> bool | None:
        """None leaves it as it is, where labels are changed."""
        flag = self.is_read_alias if self.is_read is UNSET else self.is_read
        if flag is not UNSET:
            return flag
        if not self.add_labels and not self.remove_labels:
            raise BadRequest("is_read is missing: send true or false, or labels.", field="is_read")
        return None


class ThreadMessageQuery(Struct, frozen=True):
    order: Annotated[Literal["asc", "desc"], Meta(description="desc gives the newest first.")] = "asc"
    limit: Limit = 50
    offset: Offset = 0


Day = Annotated[str, Meta(pattern=DAY, description="A day, UTC.", examples=["2026-01-31"])]


def _day(value: str, name: str) -> int:
    try:
        return date.fromisoformat(value).toordinal() - FIRST_DAY
    except ValueError:
        raise BadRequest(f"{name} is a day such as 2026-01-31.", field=name) from None


class MessageQuery(Struct, frozen=True):
    direction: (
        Annotated[Literal["inbound", "outbound"], Meta(description="Only these; both by default.")] | None
    ) = None
    include: Annotated[Literal["blocked"], Meta(description="Also what a policy stopped.")] | None = None
    limit: Limit = 50
    offset: Offset = 0


class EventQuery(Struct, frozen=True):
    after: Annotated[str, Meta(description="The last event that you have.")] | None = None
    limit: Limit = 50
    wait: Annotated[float, Meta(ge=0, le=60, description="Seconds to hold on for an event.")] = 0
    order: Annotated[
        Literal["asc", "desc"],
        Meta(description="desc gives the newest first, before `after`, without waiting."),
    ] = "asc"
    inbox_ids: Annotated[
        str,
        Meta(
            description="Only of these inboxes, separated by commas.",
            extra_json_schema={"pattern": SOME_INBOXES, "x-separator": ","},
        ),
    ] = ""
    event_types: Annotated[
        str,
        Meta(
            description="Only of these kinds, separated by commas.",
            extra_json_schema={"pattern": SOME_KINDS, "x-separator": ","},
        ),
    ] = ""

    def wanted(self, reach: Reach) -> EventChoice:
        if not _LISTED.fullmatch(self.inbox_ids):
            raise BadRequest("inbox_ids are ids, separated by commas.", field="inbox_ids")
        asked = frozenset(self.inbox_ids.split(",")) - {""}
        types = frozenset(self.event_types.split(",")) - {""}
        kinds.require_known(types, "event_types")
        if len(asked) > INBOXES_OF_A_FILTER:
            raise BadRequest(f"inbox_ids can name {INBOXES_OF_A_FILTER} inboxes.", field="inbox_ids")
        return EventChoice(reach, asked, types)


class Boundary(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[str, Meta(description="Of this inbox alone.")] | None = None
    pod_id: Annotated[str, Meta(description="Of this pod alone: its id or clientId.")] | None = None


class ApprovalQuery(Struct, rename="camel", frozen=True):
    state: Annotated[
        Literal["held", "scheduled", "approved", "released", "rejected", "expired", "cancelled"],
        Meta(description="Those in this state."),
    ] = "held"
    inbox_id: Annotated[str, Meta(description="Of this inbox alone.")] | None = None
    pod_id: Annotated[str, Meta(description="Of this pod alone: its id or clientId.")] | None = None
    limit: Limit = 50
    offset: Offset = 0


Note = Annotated[
    str, Meta(max_length=1000, pattern=r"^[^\x00]*$", description="Why; kept, and shown in the event.")
]


class Approve(Struct, rename="camel", frozen=True):
    content_hash: Annotated[str, Meta(description="Of the content that was seen, from `hold`.")]
    note: Note | None = None


class Reject(Struct, frozen=True):
    note: Note | None = None


class MessageChange(Struct, rename="camel", frozen=True):
    send_at: Annotated[
        str,
        Meta(
            description="The new moment, with its time zone.",
            examples=["2026-11-14T10:05:00Z"],
            extra_json_schema={"format": "date-time"},
        ),
    ]

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
