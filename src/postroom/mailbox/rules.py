"""Rules: what is done with email that comes in, by a search that it matches. Each level has its own."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from postroom import ids, limits
from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, no_such
from postroom.storage.database import Row, Tx, all_of, insert_item, item_from_row, update, update_item
from postroom_mail.writing.header_words import CONTROL

ActionType = Literal[
    "label",
    "archive",
    "markRead",
    "flag",
    "assign",
    "snooze",
    "junk",
    "trash",
    "silent",
    "copyTo",
    "forward",
    "redirect",
    "reply",
    "webhook",
    "judge",
]
LATER: tuple[ActionType, ...] = ("junk", "copyTo", "forward", "redirect", "reply", "webhook", "judge")
SENDING: tuple[ActionType, ...] = ("forward", "redirect", "reply")
# What the type of an action needs; `reply` needs one of them.
NEEDS: dict[str, tuple[str, ...]] = {
    "label": ("label",),
    "assign": ("assignee_id",),
    "snooze": ("days",),
    "copyTo": ("inbox_id",),
    "forward": ("to",),
    "redirect": ("to",),
    "reply": ("template_id", "body"),
    "webhook": ("webhook_id",),
}


class RuleAction(Struct, rename="camel", frozen=True, omit_defaults=True):
    """One thing that a rule does; `type` says which of the other fields it needs."""

    type: Annotated[
        ActionType, Meta(description="silent hides the email from programs: no event, no webhook.")
    ]
    label: Annotated[str, Meta(max_length=limits.LABEL_CHARACTERS)] | None = None
    assignee_id: Annotated[str, Meta(description="A user who sees the inbox.")] | None = None
    days: Annotated[int, Meta(ge=1, le=limits.SNOOZE_DAYS, description="How long it is snoozed.")] | None = (
        None
    )
    inbox_id: Annotated[str, Meta(description="An inbox of the account.")] | None = None
    to: Annotated[str, Meta(max_length=limits.ADDRESS_CHARACTERS, description="One address.")] | None = None
    template_id: Annotated[str, Meta(description="A template of the inbox, by id or name.")] | None = None
    body: Annotated[str, Meta(min_length=1, max_length=limits.BODY_CHARACTERS)] | None = None
    webhook_id: Annotated[str, Meta(description="A webhook of the list.")] | None = None


class Rule(Struct, frozen=True):
    id: str
    account_id: str
    owner: str  # the account, pod or inbox that has it
    position: int
    name: str
    query: str
    actions: tuple[RuleAction, ...]
    stop: bool
    enabled: bool
    disabled_reason: str | None
    key_id: str
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "Rule":
        return item_from_row(
            cls,
            row,
            actions=decode_actions(row["actions"]),
            stop=bool(row["stop"]),
            enabled=bool(row["enabled"]),
        )


class Fired(Struct, frozen=True):
    """How often a rule matched in the last 30 days, and when last."""

    matches: int = 0
    last_at: int | None = None


def decode_actions(stored: str) -> tuple[RuleAction, ...]:
    return msgspec.json.decode(stored, type=tuple[RuleAction, ...])


def encode_actions(actions: Sequence[RuleAction]) -> str:
    return msgspec.json.encode(actions).decode()


def owner_of(within: Scope) -> str:
    return within.owner[1]


def add(tx: Tx, within: Scope, rule: Rule) -> None:
    """Add a rule as the last of its level."""
    accounts.lock(tx, within.account_id)
    there = list_of_level(tx, rule.owner)
    if len(there) >= limits.RULES_OF_A_LEVEL:
        raise BadRequest(
            f"One level has at most {limits.RULES_OF_A_LEVEL} rules. Delete one first.", field="name"
        )
    _insert(tx, rule)
    _move(tx, [*there, rule], rule, rule.position)
    _record_change(tx, rule.account_id)


def _insert(tx: Tx, rule: Rule) -> None:
    insert_item(
        tx,
        "rules",
        rule,
        actions=encode_actions(rule.actions),
        stop=int(rule.stop),
        enabled=int(rule.enabled),
    )


def put(tx: Tx, rule: Rule) -> None:
    accounts.lock(tx, rule.account_id)
    update_item(
        tx,
        "rules",
        rule,
        ("name", "query", "disabled_reason", "key_id"),
        actions=encode_actions(rule.actions),
        stop=int(rule.stop),
        enabled=int(rule.enabled),
    )
    _move(tx, list_of_level(tx, rule.owner), rule, rule.position)
    _record_change(tx, rule.account_id)


def _move(tx: Tx, there: Sequence[Rule], rule: Rule, position: int) -> None:
    """Move a rule to a position and renumber its level."""
    order = [each.id for each in there if each.id != rule.id]
    order.insert(max(0, position), rule.id)
    before = {each.id: each.position for each in there}
    for number, rule_id in enumerate(order):
        if before[rule_id] != number or rule_id == rule.id:
            update(tx, "rules", rule_id, position=number)


def disable(tx: Tx, rule: Rule, reason: str) -> bool:
    """Switches it off. False if it was off already."""
    off = tx.run(
        "update rules set enabled = 0, disabled_reason = :reason where id = :id and enabled = 1",
        reason=reason,
        id=rule.id,
    )
    if off:
        _record_change(tx, rule.account_id)
    return off == 1


def remove(tx: Tx, rule: Rule) -> None:
    accounts.lock(tx, rule.account_id)
    for table, column in (("rules", "id"), ("rule_matches", "rule_id"), ("rule_tasks", "rule_id")):
        tx.run(f"delete from {table} where {column} = :id", id=rule.id)
    _record_change(tx, rule.account_id)


def _record_change(tx: Tx, account_id: str) -> None:
    tx.run(
        "insert into rule_versions (account_id, version) values (:id, 1)"
        " on conflict (account_id) do update set version = rule_versions.version + 1",
        id=account_id,
    )


def versions(tx: Tx, account_ids: Sequence[str]) -> dict[str, int]:
    """Return the versions of those accounts that have, or had, rules."""
    rows = all_of(
        tx, "select account_id, version from rule_versions where :wanted", "account_id", account_ids
    )
    return {row["account_id"]: int(row["version"]) for row in rows}


def list_of_level(tx: Tx, owner: str) -> list[Rule]:
    rows = tx.all("select * from rules where owner = :owner order by position, id", owner=owner)
    return [Rule.from_row(row) for row in rows]


def list_for_inbox(tx: Tx, scope: Scope) -> list[Rule]:
    """List all rules that are switched on for an inbox: the account's, its pod's, then its own."""
    owners = [scope.account_id, scope.pod_id, scope.inbox_id]
    rows = all_of(tx, "select * from rules where enabled = 1 and :wanted", "owner", owners)
    found = [Rule.from_row(row) for row in rows]
    return sorted(found, key=lambda rule: (owners.index(rule.owner), rule.position, rule.id))


def find(tx: Tx, rule_id: str) -> Rule | None:
    row = tx.one("select * from rules where id = :id", id=rule_id)
    return None if row is None else Rule.from_row(row)


def get(tx: Tx, account_id: str, rule_id: str) -> Rule:
    rule = find(tx, rule_id) if ids.is_id(ids.RULE, rule_id) else None
    if rule is None or rule.account_id != account_id:
        raise no_such("rule")
    return rule


def record_matches(tx: Tx, matches: Sequence[tuple[str, str, int]]) -> None:
    """Record the rule, message and time of each match."""
    tx.many(
        "insert into rule_matches (rule_id, message_id, matched_at) values :rows on conflict do nothing",
        matches,
    )


def fired(tx: Tx, rule_ids: Sequence[str]) -> dict[str, Fired]:
    rows = all_of(
        tx,
        "select rule_id, count(*) as matches, max(matched_at) as last_at from rule_matches where :wanted"
        " group by rule_id",
        "rule_id",
        rule_ids,
    )
    return {row["rule_id"]: Fired(int(row["matches"]), row["last_at"]) for row in rows}


def require_name(name: str) -> None:
    if not name.strip() or CONTROL.search(name):
        raise BadRequest("name must be text without control characters.", field="name")
