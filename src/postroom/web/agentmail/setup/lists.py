"""Lists of /v0: who may write and who may be written to, stored as rules of a policy."""

from functools import partial

from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.rules.policy import PolicyRule
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.errors import BadRequest, NotFound, no_such
from postroom.mailbox import inboxes
from postroom.operations import policies as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes
from postroom.web.agentmail.setup import setup_shapes

DIRECTIONS = {"send": policy.OUTBOUND, "receive": policy.INBOUND}
TYPES = ("allow", "block")


def read_list(direction: str, type: str) -> tuple[str, str]:
    if type not in TYPES or direction not in (*DIRECTIONS, "reply"):
        raise NotFound("A list is of send, receive or reply, and of allow or block.")
    if direction == "reply":
        raise BadRequest("Replies use the receive lists here: there is no reply list.", field="direction")
    return DIRECTIONS[direction], type


def show(tx: Tx, place: Scope, direction: str, type: str, rule: PolicyRule) -> shapes.Page:
    inbox = None if place.inbox_id is None else inboxes.find(tx, place.inbox_id)
    return {
        "entry": rule.value,
        "organization_id": place.account_id,
        **({} if rule.reason is None else {"reason": rule.reason}),
        "direction": direction,
        "list_type": type,
        "entry_type": "email" if "@" in rule.value else "domain",
        "created_at": to_iso(rule.created_at),
        **({} if place.pod_id is None else {"pod_id": place.pod_id}),
        **({} if inbox is None else {"inbox_id": inbox.address}),
    }


def find_entry(tx: Tx, place: Scope, direction: str, type: str, entry: str) -> PolicyRule:
    ours, kind = read_list(direction, type)
    wanted = entry.strip().lower().removeprefix("@")
    for rule in policy.get(tx, place, ours).rules:
        if (rule.type, rule.value) == (kind, wanted):
            return rule
    raise no_such("entry")


def list_entries(tx: Tx, place: Scope, direction: str, type: str, query: shapes.PageQuery) -> shapes.Page:
    ours, kind = read_list(direction, type)
    found = [rule for rule in policy.get(tx, place, ours).rules if rule.type == kind]
    shown = partial(show, tx, place, direction, type)
    return paging.page_of("entries", paging.part_of(found, query), query, shown)


def add_entry(
    tx: Tx,
    caller: Caller,
    place: Scope,
    direction: str,
    type: str,
    body: setup_shapes.NewEntry,
    now: int,
) -> shapes.Page:
    """Add an entry. The first entry of an allow list activates it: nobody else is allowed from then on."""
    ours, kind = read_list(direction, type)
    new = verbs.NewRule(kind, body.entry, ours)  # type: ignore[arg-type]
    made = verbs.add_policy_rule(tx, caller, place, new, now)
    if body.reason is not None:
        policy.set_reason(tx, made.id, body.reason)
    if kind == "allow" and policy.get(tx, place, ours).mode != "allowlist":
        verbs.put_policy_mode(tx, caller, place, verbs.ModeChange("allowlist", ours), now)  # type: ignore[arg-type]
    return get_entry(tx, place, direction, type, made.value)


def get_entry(tx: Tx, place: Scope, direction: str, type: str, entry: str) -> shapes.Page:
    return show(tx, place, direction, type, find_entry(tx, place, direction, type, entry))


def delete_entry(
    tx: Tx, caller: Caller, place: Scope, direction: str, type: str, entry: str, now: int
) -> None:
    """Delete an entry.

    Without entries an allow list allows everybody again, as far as the levels above do.
    """
    rule = find_entry(tx, place, direction, type, entry)
    ours, kind = read_list(direction, type)
    verbs.delete_policy_rule(tx, caller, place, rule.id, now)
    is_last = not any(each.type == "allow" for each in policy.get(tx, place, ours).rules)
    if kind == "allow" and is_last:
        verbs.put_policy_mode(tx, caller, place, verbs.ModeChange("inherit", ours), now)  # type: ignore[arg-type]
