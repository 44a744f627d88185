"""Rules of approval and limits that a key is given, and who may give them."""

from dataclasses import replace

from msgspec import UNSET, UnsetType

from postroom.accounts.keys import Caller, Key
from postroom.accounts.rules import approval as approvals
from postroom.accounts.rules import limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.errors import Forbidden


def require_may_bind(caller: Caller) -> None:
    """Whose sends are held or limited gives no key rules or limits of its own: they could be weaker."""
    if caller.is_bound:
        raise Forbidden("A key that is held or limited itself changes the rules and limits of no key.")


def bind(key: Key, approval: Approval | UnsetType | None, budget: Budget | UnsetType | None) -> Key:
    """With the rules and limits that are asked for; what is not asked for stays, None clears."""
    if approval is not UNSET:
        key = replace(key, approval=approvals.check_and_encode(approval))
    if budget is not UNSET:
        own = limits.check_and_encode(budget)
        key = replace(key, limits=own, budget_id=None)  # a budget of its own from now on
    return key
