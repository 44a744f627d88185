"""Operations on rules for email that comes in: listed, made, changed, moved, deleted."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.permissions import SEND
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden, NotFound, no_such
from postroom.events import webhook_list
from postroom.fields import InboxFilter, Limit, Offset, PodFilter, Timestamp, iso, show_item
from postroom.inward.rules.apply import scope_of
from postroom.limits import ACTIONS_OF_A_RULE
from postroom.mailbox import inboxes, labels, rules, templates
from postroom.mailbox.rules import NEEDS, SENDING, Fired, RuleAction
from postroom.mailbox.search import message_search
from postroom.storage.database import Tx
from postroom_mail.mime.address import validate
from postroom_mail.search.query import MAX_CHARS

RuleName = Annotated[
    str,
    Meta(min_length=1, max_length=limits.NAME_CHARACTERS, description="A name.", examples=["Invoices"]),
]
RuleQuery = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_CHARS,
        description="A search: the rule is for the email that it finds.",
        examples=["from:billing@example.com has:file"],
    ),
]
Actions = Annotated[
    list[RuleAction],
    Meta(min_length=1, max_length=ACTIONS_OF_A_RULE, description="What to do, in this order."),
]
Stop = Annotated[bool, Meta(description="true: rules behind it are left out for email that it matches.")]
Position = Annotated[
    int, Meta(ge=0, le=limits.RULES_OF_A_LEVEL, description="Among the rules of its level, from 0.")
]


class NewMailRule(Struct, rename="camel", frozen=True):
    name: RuleName
    query: RuleQuery
    actions: Actions
    stop: Stop = False
    enabled: bool = True
    position: Position | None = None


class MailRuleChange(Struct, rename="camel", frozen=True):
    name: RuleName | UnsetType = UNSET
    query: RuleQuery | UnsetType = UNSET
    actions: Actions | UnsetType = UNSET
    stop: Stop | UnsetType = UNSET
    enabled: Annotated[bool, Meta(description="false switches it off.")] | UnsetType = UNSET
    position: Position | UnsetType = UNSET


class RuleTrial(Struct, rename="camel", frozen=True):
    query: RuleQuery
    actions: Annotated[list[RuleAction], Meta(max_length=ACTIONS_OF_A_RULE)] = []
    inbox_id: Annotated[str, Meta(description="Only email of this inbox.")] | None = None


class RulesQuery(Struct, rename="camel", frozen=True):
    inbox_id: InboxFilter | None = None
    pod_id: PodFilter | None = None
    limit: Limit = limits.LONGEST_PAGE
    offset: Offset = 0


class MailRule(Struct, rename="camel", frozen=True):
    """`inboxId` or `podId` say where it is; without either it is of the account."""

    id: str
    pod_id: str | None
    inbox_id: str | None
    name: str
    query: str
    actions: list[RuleAction]
    stop: bool
    enabled: bool
    disabled_reason: Annotated[str | None, Meta(description="Why the server switched it off.")]
    position: int
    matches: Annotated[int, Meta(description="Emails that it matched in the last 30 days.")]
    last_matched_at: Timestamp | None
    created_at: Timestamp

    @classmethod
    def of(cls, rule: rules.Rule, fired: Fired) -> "MailRule":
        place = scope_of(rule)
        return show_item(
            cls,
            rule,
            pod_id=place.pod_id,
            inbox_id=place.inbox_id,
            matches=fired.matches,
            last_matched_at=iso(fired.last_at),
        )


class MailRulePage(Struct, frozen=True):
    data: list[MailRule]
    total: int


def list_rules(tx: Tx, caller: Caller, within: Scope, query: RulesQuery) -> MailRulePage:
    """List the rules of the account, a pod or an inbox, in their order"""
    found = rules.list_of_level(tx, rules.owner_of(within))
    return MailRulePage(_show_all(tx, found[query.offset : query.offset + query.limit]), len(found))


def _show_all(tx: Tx, found: Sequence[rules.Rule]) -> list[MailRule]:
    fired = rules.fired(tx, [rule.id for rule in found])
    return [MailRule.of(rule, fired.get(rule.id, Fired())) for rule in found]


def create_rule(tx: Tx, caller: Caller, within: Scope, body: NewMailRule, now: int) -> MailRule:
    """Add a rule for email that comes in; the query says for which inbox or pod"""
    require_valid(tx, caller, within, body.query, body.actions)
    rules.require_name(body.name)
    rule = rules.Rule(
        id=ids.new(ids.RULE, now),
        account_id=caller.account_id,
        owner=rules.owner_of(within),
        position=limits.RULES_OF_A_LEVEL if body.position is None else body.position,
        name=body.name.strip(),
        query=body.query,
        actions=tuple(body.actions),
        stop=body.stop,
        enabled=body.enabled,
        disabled_reason=None,
        key_id=caller.key_id,
        created_at=now,
    )
    rules.add(tx, within, rule)
    shown = _show(tx, rule.id)
    audit.record_by(tx, caller, "rule.created", rule.id, now, within=within, after=shown)
    return shown


def get_rule(tx: Tx, caller: Caller, rule_id: str) -> MailRule:
    """Get a rule"""
    return _show_all(tx, [get_of(tx, caller.scope, rule_id)])[0]


def change_rule(tx: Tx, caller: Caller, rule_id: str, body: MailRuleChange, now: int) -> MailRule:
    """Change a rule; the caller who changes its actions answers for what it sends"""
    rule = get_of(tx, caller.scope, rule_id)
    before, place = _show(tx, rule.id), scope_of(rule)
    given = {name: getattr(body, name) for name in body.__struct_fields__}
    given = {name: value for name, value in given.items() if value is not UNSET}
    if not given:
        raise BadRequest(
            "Nothing to change: send name, query, actions, stop, enabled or position.", field="name"
        )
    if "name" in given:
        rules.require_name(given["name"])
    if "actions" in given:
        given["actions"] = tuple(given["actions"])
    changed = replace(rule, **given)
    if {"query", "actions"} & set(given) or (changed.enabled and not rule.enabled):
        require_valid(tx, caller, place, changed.query, changed.actions)
        changed = replace(changed, key_id=caller.key_id)
    if changed.enabled:
        changed = replace(changed, disabled_reason=None)
    rules.put(tx, changed)
    after = _show(tx, rule.id)
    audit.record_by(tx, caller, "rule.changed", rule.id, now, within=place, before=before, after=after)
    return after


def delete_rule(tx: Tx, caller: Caller, rule_id: str, now: int) -> None:
    """Delete a rule; what it did stays"""
    rule = get_of(tx, caller.scope, rule_id)
    before = _show(tx, rule.id)
    rules.remove(tx, rule)
    audit.record_by(tx, caller, "rule.deleted", rule.id, now, within=scope_of(rule), before=before)


def _show(tx: Tx, rule_id: str) -> MailRule:
    rule = rules.find(tx, rule_id)
    assert rule is not None
    return _show_all(tx, [rule])[0]


def get_of(tx: Tx, scope: Scope, rule_id: str) -> rules.Rule:
    """Return a rule in a scope. Keys of a pod do not find rules of the account."""
    rule = rules.get(tx, scope.account_id, rule_id)
    place = scope_of(rule)
    if place.inbox_id is not None:
        inbox = inboxes.find(tx, place.inbox_id)
        is_there = inbox is not None and inboxes.is_within(inbox, scope)
    else:
        is_there = scope.includes(place)
    if not is_there:
        raise no_such("rule")
    return rule


def require_valid(tx: Tx, caller: Caller, within: Scope, query: str, actions: Sequence[RuleAction]) -> None:
    """Raise an error that names the first invalid field. A rule may do only what its creator may."""
    asked = message_search.parse(query, "query")
    if any(each.name == "assignee" for group in asked.filters for each in group):
        raise BadRequest("assignee: has no meaning for email that has just come in.", field="query")
    for number, action in enumerate(actions):
        _require_complete(action, number)
        _require_there(tx, caller, within, action, number)
    kinds = [action.type for action in actions]
    if "webhook" in kinds and {"silent", "trash", "junk"} & set(kinds):
        raise BadRequest("webhook posts an event, which silent, junk and trash leave out.", field="actions")
    if "snooze" in kinds and "archive" in kinds:
        raise BadRequest("A thread is snoozed or archived, not both.", field="actions")
    if set(SENDING) & set(kinds) and SEND not in caller.permissions:
        raise Forbidden("A rule that sends needs a key with the permission send.")


def _require_complete(action: RuleAction, number: int) -> None:
    given = {name for name in action.__struct_fields__[1:] if getattr(action, name) is not None}
    needed = NEEDS.get(action.type, ())
    if len(given & set(needed)) != min(1, len(needed)) or given - set(needed):
        wanted = " or ".join(map(_camel, needed)) or "no other field"
        raise BadRequest(f"{action.type} takes {wanted}.", field=f"actions[{number}]")


def _require_there(tx: Tx, caller: Caller, within: Scope, action: RuleAction, number: int) -> None:
    place = f"actions[{number}]"
    if action.label is not None:
        labels.require_valid([action.label], f"{place}.label")
    if action.to is not None:
        _require_address(action.to, f"{place}.to")
    try:
        if action.inbox_id is not None:
            inboxes.get(tx, caller.scope, action.inbox_id)
        if action.webhook_id is not None:
            webhook_list.get(tx, caller.account_id, action.webhook_id)
        if action.template_id is not None and within.inbox_id is not None:
            templates.get_of_inbox(tx, inboxes.get(tx, caller.scope, within.inbox_id), action.template_id)
    except NotFound as error:
        raise BadRequest(f"{action.type}: {error.message}", field=place) from None
    if action.assignee_id is not None:
        user = users.find(tx, action.assignee_id)
        if user is None or user.account_id != caller.account_id:
            raise BadRequest(
                "assigneeId is not a user of this account. GET /v1/users lists them.",
                field=f"{place}.assigneeId",
            )


def _require_address(address: str, field: str) -> None:
    try:
        validate(address)
    except ValueError as error:
        raise BadRequest(f"to is not an email address: {error}", field=field) from None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
