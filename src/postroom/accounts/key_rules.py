"""What a key may create, its rules and limits, who may set them, and that one managing key stays."""

from collections.abc import Iterable

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from postroom.accounts import keys, permissions
from postroom.accounts.keys import Caller, Key
from postroom.accounts.rules import approval as approvals
from postroom.accounts.rules import limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import AccountLimits, Budget
from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, Forbidden, LastKey, Unauthorized
from postroom.storage.database import Tx


def require_may_bind(caller: Caller) -> None:
    """Refuse a key that needs approval or has limits.

    Rules and limits that it sets could be weaker than its own.
    """
    if caller.is_bound:
        raise Forbidden("A key with its own rules or limits cannot change those of any key. Use another one.")


def make(
    tx: Tx,
    caller: Caller,
    within: Scope,
    name: str,
    token: str,
    asked: Iterable[str] | None,
    expires_at: int | None,
    now: int,
) -> Key:
    """Make a key.

    It cannot have more permissions, a wider scope or a later expiry than the key that makes it.
    """
    if not caller.scope.includes(within):
        raise Forbidden(
            "A key cannot create a key with a wider scope. Leave out inboxId and podId, or use another key."
        )
    maker = keys.find(tx, caller.account_id, caller.key_id)
    if maker is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    is_of_an_inbox = within.inbox_id is not None
    wanted = permissions.read(asked, is_of_an_inbox)
    if asked is None:
        wanted = tuple(word for word in wanted if word in maker.permissions)
    if not wanted or not set(wanted) <= _may_give(maker):
        raise Forbidden("A key cannot give permissions that it lacks. Leave them out.", field="permissions")
    return keys.add(
        tx,
        caller.account_id,
        within.inbox_id,
        name,
        token,
        now,
        pod_id=within.pod_id,
        asked=wanted,
        expires_at=_require_end(expires_at, maker.expires_at, now),
        creator=caller,
    )


def _may_give(maker: Key) -> set[str]:
    """Return the permissions a key may give.

    One that reads and drafts in several inboxes may give notes; an OAuth client may not.
    """
    is_for_an_agent = maker.inbox_id is not None or maker.resource is not None
    return set(maker.permissions) if is_for_an_agent else permissions.with_notes(maker.permissions)


def _require_end(asked: int | None, makers: int | None, now: int) -> int | None:
    """Return when the new key expires: without an expiry of its own, together with the key that makes it."""
    if asked is not None and asked <= now:
        raise BadRequest("expiresAt must be in the future.", field="expiresAt")
    if asked is not None and makers is not None and asked > makers:
        raise Forbidden(
            "A key cannot create a key that expires later. Choose an earlier expiresAt.", field="expiresAt"
        )
    return makers if asked is None else asked


def bind(
    key: Key,
    approval: Approval | UnsetType | None,
    budget: Budget | UnsetType | None,
    allowed: AccountLimits,
    origin_guard: str | UnsetType | None = UNSET,
) -> Key:
    """Sets the given rules and limits; UNSET keeps, None clears."""
    if approval is not UNSET:
        key = replace(key, approval=approvals.check_and_encode(approval))
    if budget is not UNSET:
        own = limits.check_and_encode(budget, allowed)
        key = replace(key, limits=own, budget_id=None)  # its own budget from now on
    if origin_guard is not UNSET:
        key = replace(key, origin_guard=origin_guard)
    return key


def require_another_manager(tx: Tx, key: Key, now: int) -> None:
    """Refuse to lose the last key that may manage the account: nobody could make another."""
    if not key.scope.is_account or permissions.MANAGE not in key.permissions:
        return
    rows = tx.all(
        "select id, permissions from keys where account_id = :account_id and pod_id is null"
        " and inbox_id is null and kind = 'key' and words is null"
        " and (expires_at is null or expires_at > :now)",
        account_id=key.account_id,
        now=now,
    )
    if not any(row["id"] != key.id and permissions.MANAGE in row["permissions"].split() for row in rows):
        raise LastKey("This is the last key of the account that may manage. Create another one first.")
