"""What requests about policies and the audit log carry."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom.accounts.rules import policy
from postroom.web.interface.bodies.body import AskedMoment, InboxFilter, Limit, Offset, PodFilter

Direction = Annotated[Literal["inbound", "outbound"], Meta(description="Mail in, or mail out.")]
Mode = Annotated[
    Literal["none", "allowlist", "inherit"], Meta(description="allowlist: only whom a rule allows.")
]
RuleType = Annotated[
    Literal["allow", "block"], Meta(description="An allow rule counts where the mode is allowlist.")
]
RuleValue = Annotated[
    str,
    Meta(
        max_length=320,
        description="An address, a domain, or *.domain for the names below it.",
        examples=["alice@example.com", "example.com", "*.example.com"],
    ),
]


class GivenRule(Struct, frozen=True):
    type: RuleType
    value: RuleValue


class GivenPolicy(Struct, frozen=True):
    mode: Mode = "inherit"
    rules: Annotated[list[GivenRule], Meta(max_length=policy.RULES_LIMIT)] = []


class PolicyChange(Struct, frozen=True):
    inbound: GivenPolicy | UnsetType = UNSET
    outbound: GivenPolicy | UnsetType = UNSET


class ModeChange(Struct, frozen=True):
    mode: Mode
    direction: Direction


class NewRule(Struct, frozen=True):
    type: RuleType
    value: RuleValue
    direction: Direction


class PolicyAuditQuery(Struct, rename="camel", frozen=True):
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None
    action: Annotated[Literal["blocked", "refused", "released"], Meta(description="Only these.")] | None = (
        None
    )
    direction: Direction | None = None
    since: AskedMoment | None = None
    until: AskedMoment | None = None
    limit: Limit = 50
    offset: Offset = 0


class AuditQuery(Struct, frozen=True):
    since: AskedMoment | None = None
    until: AskedMoment | None = None
    actor: Annotated[str, Meta(description="The id of a key, a session or a reviewer.")] | None = None
    action: Annotated[str, Meta(description="What was done, such as key.created.")] | None = None
    limit: Limit = 50
    offset: Offset = 0
