"""What requests carry: the types of bodies and queries."""

import re
from datetime import date
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from postroom.accounts import names, permissions, pods
from postroom.accounts.reach import Reach
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.errors import (
    BadRequest,
)
from postroom.events import kinds
from postroom.events.events import EventChoice
from postroom.fields import (
    Limit,
    Moment,
    PodId,
)
from postroom.mailbox import inboxes

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
RetentionDays = Annotated[
    int, Meta(ge=1, le=3650, description="Days that mail is kept; older mail is deleted.")
]
OwnWebhook = Annotated[str, Meta(description="A webhook of the inbox's own, instead of the account's.")]
Permission = Annotated[str, Meta(extra_json_schema={"enum": list(permissions.ALL)})]


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


class WaitQuery(Struct, frozen=True):
    timeout: Annotated[float, Meta(ge=0, le=120, description="Seconds to wait.")] = 60
    after: Annotated[str, Meta(description="An event or message id to start behind.")] | None = None
    sender: Annotated[str, Meta(description="Part of the sender.")] = field(default="", name="from")
    subject: Annotated[str, Meta(description="Part of the subject.")] = ""
    thread_id: Annotated[str, Meta(description="Only in this thread.")] = ""
    q: Annotated[str, Meta(description="Only what answers this search.")] = ""


Day = Annotated[str, Meta(pattern=DAY, description="A day, UTC.", examples=["2026-01-31"])]


def _day(value: str, name: str) -> int:
    try:
        return date.fromisoformat(value).toordinal() - FIRST_DAY
    except ValueError:
        raise BadRequest(f"{name} is a day such as 2026-01-31.", field=name) from None


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
