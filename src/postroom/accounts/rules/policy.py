"""Policies: who may write to an inbox and whom it may write to. Account, pod and inbox can only restrict."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, no_such
from postroom.limits import ADDRESS_CHARACTERS
from postroom.storage import pages
from postroom.storage.database import Row, Tx, delete, insert, insert_new, item_from_row, one_of
from postroom_mail.mime import address_rules

INBOUND, OUTBOUND = "inbound", "outbound"
NONE, ALLOWLIST, INHERIT = "none", "allowlist", "inherit"
MODES = (NONE, ALLOWLIST, INHERIT)
ALLOW, BLOCK, TRUST = "allow", "block", "trust"
TYPES = (ALLOW, BLOCK, TRUST)
RULES_LIMIT = 1000  # of one level and direction
VALUES_AT_ONCE = 500
BLOCKED, REFUSED, RELEASED = "blocked", "refused", "released"
# A condition on a row of `inboxes`: some level restricts whom it may write to.
HAS_POLICY = (
    "exists (select 1 from policies where direction = 'outbound'"
    " and scope_id in (inboxes.id, inboxes.pod_id, inboxes.account_id))"
)


class PolicyRule(Struct, frozen=True):
    id: str
    type: str
    value: str
    created_at: int
    reason: str | None = None


class Policy(Struct, frozen=True):
    """The policy of one level in one direction."""

    mode: str
    rules: list[PolicyRule]


class PolicyRefusal(Struct, frozen=True):
    """A refused address, and the rule that refuses it; none if a level has an allow list without it."""

    within: Scope
    address: str
    rule: str | None


def scope_of(scope: Scope) -> str:
    return scope.inbox_id or scope.pod_id or scope.account_id


def get(tx: Tx, within: Scope, direction: str) -> Policy:
    row = tx.one(
        "select mode from policies where scope_id = :id and direction = :direction",
        id=scope_of(within),
        direction=direction,
    )
    rows = tx.all(
        "select * from policy_rules where scope_id = :id and direction = :direction order by created_at, id",
        id=scope_of(within),
        direction=direction,
    )
    return Policy(INHERIT if row is None else row["mode"], [item_from_row(PolicyRule, row) for row in rows])


def set_mode(tx: Tx, within: Scope, direction: str, mode: str) -> None:
    if mode not in MODES:
        raise BadRequest(f"mode must be one of {', '.join(MODES)}.", field="mode")
    _keep(tx, within, direction, mode=mode)


def has_rule(tx: Tx, account_id: str, rule_id: str) -> bool:
    found = ids.is_id(ids.RULE, rule_id) and tx.one(
        "select 1 as found from policy_rules where id = :id and account_id = :account_id",
        id=rule_id,
        account_id=account_id,
    )
    return bool(found)


def add_rule(tx: Tx, within: Scope, direction: str, kind: str, value: str, now: int) -> PolicyRule:
    """Add a rule. An existing one stays unchanged."""
    rule = PolicyRule(ids.new(ids.RULE, now), require_type(kind, direction), require_value(value), now)
    _keep(tx, within, direction, added=1)
    named = {"scope_id": scope_of(within), "direction": direction, "value": rule.value, "type": kind}
    insert_new(tx, "policy_rules", id=rule.id, account_id=within.account_id, created_at=now, **named)
    row = tx.one(
        "select * from policy_rules where scope_id = :scope_id and direction = :direction"
        " and value = :value and type = :type",
        **named,
    )
    assert row is not None
    if row["id"] != rule.id:
        _keep(tx, within, direction, added=-1)
    return item_from_row(PolicyRule, row)


def set_reason(tx: Tx, rule_id: str, reason: str | None) -> None:
    tx.run("update policy_rules set reason = :reason where id = :id", reason=reason, id=rule_id)


def remove_rule(tx: Tx, within: Scope, rule_id: str) -> PolicyRule:
    row = ids.is_id(ids.RULE, rule_id) and tx.one(
        "delete from policy_rules where id = :id and scope_id = :scope_id returning *",
        id=rule_id,
        scope_id=scope_of(within),
    )
    if not row:
        raise no_such("rule")
    _keep(tx, within, row["direction"], added=-1)
    return item_from_row(PolicyRule, row)


def replace(
    tx: Tx, within: Scope, direction: str, mode: str, rules: Sequence[tuple[str, str]], now: int
) -> None:
    """Replace the rules by `rules`, pairs of type and value. Rules that stay keep their reasons."""
    reasons = {(rule.type, rule.value): rule.reason for rule in get(tx, within, direction).rules}
    for table in ("policy_rules", "policies"):
        delete(tx, table, scope_id=scope_of(within), direction=direction)
    set_mode(tx, within, direction, mode)
    for kind, value in rules:
        rule = add_rule(tx, within, direction, kind, value, now)
        if reason := reasons.get((kind, rule.value)):
            set_reason(tx, rule.id, reason)


def require_type(kind: str, direction: str) -> str:
    if kind not in TYPES:
        raise BadRequest("type must be allow, block or trust.", field="type")
    if kind == TRUST and direction != OUTBOUND:
        raise BadRequest("A rule of type trust is for outbound email only.", field="type")
    return kind


def require_value(value: str) -> str:
    try:
        return address_rules.read(value)
    except ValueError as error:
        raise BadRequest(f"value is not valid: {error}", field="value") from None


def _keep(tx: Tx, within: Scope, direction: str, mode: str | None = None, added: int = 0) -> None:
    """Add to the rule count of a level, and set its mode if given.

    A level without restrictions has no row, so most lookups find none.
    """
    row = tx.one(
        "insert into policies (scope_id, direction, account_id, mode, rule_count)"
        " values (:scope_id, :direction, :account_id, :new_mode, :added)"
        " on conflict (scope_id, direction) do update set rule_count = policies.rule_count + :added,"
        f" mode = {'policies.mode' if mode is None else ':new_mode'} returning mode, rule_count",
        scope_id=scope_of(within),
        direction=direction,
        account_id=within.account_id,
        new_mode=mode or INHERIT,
        added=added,
    )
    assert row is not None
    if row["rule_count"] > RULES_LIMIT:
        raise BadRequest(f"A policy has at most {RULES_LIMIT} rules in each direction.", field="rules")
    if row["mode"] == INHERIT and row["rule_count"] == 0:
        delete(tx, "policies", scope_id=scope_of(within), direction=direction)


def find_refused(tx: Tx, inbox: Scope, addresses: Iterable[str]) -> list[PolicyRefusal]:
    """Return those addresses that an inbox may not write to."""
    return find_refusals(tx, OUTBOUND, [(inbox, addresses)])


def find_refusals(
    tx: Tx, direction: str, asked: Sequence[tuple[Scope, Iterable[str]]], meets_allow: bool = True
) -> list[PolicyRefusal]:
    """Return the refusals, by a single lookup if nothing restricts.

    `meets_allow` is false for mail that may be forged.
    """
    modes = find_modes(tx, direction, [inbox for inbox, _ in asked])
    if not modes:
        return []
    pairs = [(inbox, address) for inbox, addresses in asked for address in addresses]
    met = {address: address_rules.met_by(address) for _, address in pairs}
    rules = _find_rules(
        tx, direction, sorted(modes), sorted({value for found in met.values() for value in found})
    )
    refusals = (
        _find_refusal(
            inbox,
            address,
            [level for level in levels_of(inbox) if level in modes],
            modes,
            rules,
            met,
            meets_allow,
        )
        for inbox, address in pairs
    )
    return [refusal for refusal in refusals if refusal is not None]


def are_trusted(tx: Tx, inbox: Scope, addresses: Iterable[str]) -> bool:
    """Return whether each address has a rule at some level that exempts mail to it from review."""
    levels = sorted(find_modes(tx, OUTBOUND, [inbox]))
    met = [address_rules.met_by(address) for address in addresses]
    rules = _find_rules(tx, OUTBOUND, levels, sorted({value for found in met for value in found}))
    return bool(met) and all(
        any(TRUST in rules[level, value] for level in levels for value in found) for found in met
    )


def are_allowed(tx: Tx, inbox: Scope, addresses: Iterable[str]) -> bool:
    """Return whether each address has an `allow` rule for received mail at some level."""
    levels = sorted(find_modes(tx, INBOUND, [inbox]))
    if not levels:
        return False
    met = [address_rules.met_by(address) for address in addresses]
    rules = _find_rules(tx, INBOUND, levels, sorted({value for found in met for value in found}))
    return bool(met) and all(
        any(ALLOW in rules[level, value] for level in levels for value in found) for found in met
    )


Rules = dict[tuple[str, str], set[str]]  # the types of the rules of a level for a value


def _find_refusal(
    inbox: Scope,
    address: str,
    levels: list[str],
    modes: dict[str, str],
    rules: Rules,
    met: dict[str, list[str]],
    meets_allow: bool,
) -> PolicyRefusal | None:
    """Return the refusal of one address, if any.

    Any level may block it, and every level with an allow list must allow it.
    """
    for level in levels:
        for value in met[address]:
            if BLOCK in rules[level, value]:
                return PolicyRefusal(inbox, address, value)
    for level in levels:
        is_allowed = meets_allow and any(ALLOW in rules[level, value] for value in met[address])
        if modes[level] == ALLOWLIST and not is_allowed:
            return PolicyRefusal(inbox, address, None)
    return None


def levels_of(inbox: Scope) -> list[str]:
    return [level for level in (inbox.account_id, inbox.pod_id, inbox.inbox_id) if level is not None]


def find_modes(tx: Tx, direction: str, inboxes: Iterable[Scope]) -> dict[str, str]:
    """Return the modes of those levels above these inboxes that have restrictions."""
    levels = sorted({level for inbox in inboxes for level in levels_of(inbox)})
    found: dict[str, str] = {}
    for start in range(0, len(levels), VALUES_AT_ONCE):
        is_asked, asked = one_of("scope_id", levels[start : start + VALUES_AT_ONCE])
        rows = tx.all(
            f"select scope_id, mode from policies where direction = :direction and {is_asked}",
            direction=direction,
            **asked,
        )
        found |= {row["scope_id"]: row["mode"] for row in rows}
    return found


def _find_rules(tx: Tx, direction: str, levels: Sequence[str], values: Sequence[str]) -> Rules:
    found: Rules = defaultdict(set)
    for level in levels:
        for start in range(0, len(values), VALUES_AT_ONCE):
            is_met, met = one_of("value", values[start : start + VALUES_AT_ONCE])
            rows = tx.all(
                "select value, type from policy_rules where scope_id = :level and direction = :direction"
                f" and {is_met}",
                level=level,
                direction=direction,
                **met,
            )
            for row in rows:
                found[level, row["value"]].add(row["type"])
    return found


class Stop(Struct, frozen=True):
    """What a policy stopped, or what was released."""

    at: int
    action: str
    direction: str
    address: str
    rule: str | None
    inbox_id: str
    message_id: str | None

    @classmethod
    def from_row(cls, row: Row) -> "Stop":
        return item_from_row(cls, row, at=row["created_at"])


def record_stop(
    tx: Tx, action: str, direction: str, refusal: PolicyRefusal, now: int, message_id: str | None = None
) -> None:
    within = refusal.within
    insert(
        tx,
        "policy_audit",
        id=ids.new(ids.AUDIT, now),
        account_id=within.account_id,
        pod_id=within.pod_id,
        inbox_id=within.inbox_id,
        action=action,
        direction=direction,
        address=refusal.address[:ADDRESS_CHARACTERS],
        rule=refusal.rule,
        message_id=message_id,
        created_at=now,
    )


def list_stops(
    tx: Tx,
    within: Scope,
    action: str | None,
    direction: str | None,
    since: int | None,
    until: int | None,
    limit: int,
    offset: int,
) -> tuple[list[Stop], int]:
    """List the refused emails, newest first. The total counts at most a thousand more than the page shows."""
    owner, owner_id = within.owner
    asked = {owner: owner_id, "action": action, "direction": direction}
    rows, total = pages.newest(tx, "policy_audit", limit, offset, since, until, **asked)
    return [Stop.from_row(row) for row in rows], total


def forget_address(tx: Tx, scope: Scope, address: str, kept: str, rows: int) -> int:
    """Replaces an erased address in the log of the policies. Returns how many entries were changed."""
    owner, owner_id = scope.owner
    return tx.run(
        "update policy_audit set address = :kept where id in (select id from policy_audit"
        f" where {owner} = :owner_id and address = :address limit :rows)",
        kept=kept,
        owner_id=owner_id,
        address=address,
        rows=rows,
    )
