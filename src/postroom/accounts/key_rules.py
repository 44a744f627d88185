"""What a key is bound to, who may bind it, and that one which may manage stays."""

from dataclasses import replace

from msgspec import UNSET, UnsetType

from postroom.accounts import permissions
from postroom.accounts.keys import Caller, Key
from postroom.accounts.rules import approval as approvals
from postroom.accounts.rules import limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.errors import Forbidden, LastKey
from postroom.storage.database import Tx


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


def require_another_manager(tx: Tx, key: Key, now: int) -> None:
    """The last key of an account that may manage stays: nobody could make another."""
    if not key.reach.is_account or permissions.MANAGE not in key.permissions:
        return
    rows = tx.all(
        "select id, permissions from keys where account_id = :account_id and pod_id is null"
        " and inbox_id is null and (expires_at is null or expires_at > :now)",
        account_id=key.account_id,
        now=now,
    )
    if not any(row["id"] != key.id and permissions.MANAGE in row["permissions"].split() for row in rows):
        raise LastKey("This is the last key of the account that may manage. Make another one first.")
