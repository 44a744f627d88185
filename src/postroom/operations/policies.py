"""Operations on policies: who may write to an inbox, and whom it may write to."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits
from postroom.accounts import audit, key_rules
from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.errors import Forbidden
from postroom.fields import (
    AskedMoment,
    InboxFilter,
    Limit,
    Offset,
    PodFilter,
    Timestamp,
    read_asked,
    show_item,
)
from postroom.storage.database import Tx

Direction = Annotated[Literal["inbound", "outbound"], Meta(description="Incoming or outgoing email.")]
Mode = Annotated[
    Literal["none", "allowlist", "inherit"], Meta(description="allowlist: only what a rule allows.")
]
RuleType = Annotated[
    Literal["allow", "block", "trust"],
    Meta(
        description="An allow rule counts where the mode is allowlist. A trust rule is for outbound "
        "email: if all recipients match such rules, always, strangers, attachments and links do not "
        "hold it."
    ),
]
RuleValue = Annotated[
    str,
    Meta(
        max_length=limits.ADDRESS_CHARACTERS,
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
    since: Annotated[AskedMoment, Meta(description="Only from this time on.")] | None = None
    until: Annotated[AskedMoment, Meta(description="Only before this time.")] | None = None
    limit: Limit = limits.PAGE
    offset: Offset = 0


class ShownRule(Struct, rename="camel", frozen=True):
    id: str
    type: str
    value: str
    created_at: Timestamp

    @classmethod
    def of(cls, rule: policy.PolicyRule) -> "ShownRule":
        return show_item(cls, rule)


class DirectionPolicy(Struct, frozen=True):
    mode: str
    rules: list[ShownRule]

    @classmethod
    def of(cls, found: policy.Policy) -> "DirectionPolicy":
        return cls(found.mode, [ShownRule.of(rule) for rule in found.rules])


class ShownPolicy(Struct, frozen=True):
    inbound: DirectionPolicy
    outbound: DirectionPolicy


class PolicyStop(Struct, rename="camel", frozen=True):
    """What a policy stopped, or what was released."""

    at: Timestamp
    action: str
    direction: str
    address: str
    rule: str | None
    inbox_id: str
    message_id: str | None

    @classmethod
    def of(cls, stop: policy.Stop) -> "PolicyStop":
        return show_item(cls, stop)


class PolicyStopPage(Struct, rename="camel", frozen=True):
    data: list[PolicyStop]
    total: int


def get_policy(tx: Tx, within: Scope) -> ShownPolicy:
    """Get the policy of an inbox, a pod, or the key's whole scope"""
    return show(tx, within)


def put_policy(tx: Tx, caller: Caller, within: Scope, body: PolicyChange, now: int) -> ShownPolicy:
    """Replace the directions that are given"""
    before = show(tx, within)
    given_rules = [
        rule for given in (body.inbound, body.outbound) if given is not UNSET for rule in given.rules
    ]
    require_may_trust(caller, [rule.type for rule in given_rules])
    for direction, given in ((policy.INBOUND, body.inbound), (policy.OUTBOUND, body.outbound)):
        if given is not UNSET:
            rules = [(rule.type, rule.value) for rule in given.rules]
            policy.replace(tx, within, direction, given.mode, rules, now)
    return record_change(tx, caller, within, before, now)


def put_policy_mode(tx: Tx, caller: Caller, within: Scope, body: ModeChange, now: int) -> ShownPolicy:
    """Set the mode of one direction"""
    before = show(tx, within)
    policy.set_mode(tx, within, body.direction, body.mode)
    return record_change(tx, caller, within, before, now)


def add_policy_rule(tx: Tx, caller: Caller, within: Scope, body: NewRule, now: int) -> ShownRule:
    """Add a rule; an existing one is returned as it is"""
    require_may_trust(caller, [body.type])
    shown = ShownRule.of(policy.add_rule(tx, within, body.direction, body.type, body.value, now))
    target = policy.scope_of(within)
    audit.record_by(tx, caller, "policy.rule_added", target, now, within=within, after=shown)
    return shown


def require_may_trust(caller: Caller, types: Sequence[str]) -> None:
    """Raise unless the key may trust: an account key without rules or limits. Trust weakens approval."""
    if policy.TRUST in types:
        if not caller.scope.is_account:
            raise Forbidden("Rules of type trust need a key of the whole account.")
        key_rules.require_may_bind(caller)


def delete_policy_rule(tx: Tx, caller: Caller, within: Scope, rule_id: str, now: int) -> None:
    """Remove a rule"""
    shown = ShownRule.of(policy.remove_rule(tx, within, rule_id))
    target = policy.scope_of(within)
    audit.record_by(tx, caller, "policy.rule_removed", target, now, within=within, before=shown)


def list_policy_audit(tx: Tx, within: Scope, query: PolicyAuditQuery) -> PolicyStopPage:
    """List what policies stopped and what was released, newest first"""
    found, total = policy.list_stops(
        tx,
        within,
        query.action,
        query.direction,
        read_asked(query.since, "since"),
        read_asked(query.until, "until"),
        query.limit,
        query.offset,
    )
    return PolicyStopPage([PolicyStop.of(stop) for stop in found], total)


def show(tx: Tx, within: Scope) -> ShownPolicy:
    return ShownPolicy(
        DirectionPolicy.of(policy.get(tx, within, policy.INBOUND)),
        DirectionPolicy.of(policy.get(tx, within, policy.OUTBOUND)),
    )


def record_change(tx: Tx, caller: Caller, within: Scope, before: ShownPolicy, now: int) -> ShownPolicy:
    after = show(tx, within)
    target = policy.scope_of(within)
    audit.record_by(tx, caller, "policy.changed", target, now, within=within, before=before, after=after)
    return after
