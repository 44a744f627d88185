"""Operations of the operator: the accounts of others, and the queue of all accounts."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from postroom.accounts import accounts, audit, keys, sessions
from postroom.accounts.accounts import Account
from postroom.accounts.keys import Caller, Key
from postroom.accounts.people import users
from postroom.accounts.permissions import MANAGE
from postroom.accounts.rules import limits
from postroom.accounts.scope import Scope
from postroom.config import Plan
from postroom.errors import BadRequest, Forbidden, NotFound
from postroom.mailbox import inboxes
from postroom.operations import keys as key_verbs
from postroom.outward.holding import decide, stop
from postroom.outward.holding.decide import Decision
from postroom.queue import deliveries, statistics
from postroom.storage.database import Tx
from postroom.upkeep import account_removal


class AccountChange(Struct, frozen=True):
    name: str | UnsetType = UNSET
    plan: Plan | UnsetType = UNSET
    storage_limit_bytes: int | UnsetType | None = UNSET


def by_command(tx: Tx) -> Caller:
    """Return the caller of a command on the server's machine. The first account is the operator's own."""
    first = accounts.find_first(tx)
    if first is None:
        return Caller("", "", "", "free", Scope(""), is_operator=True)
    return Caller("", first.id, first.name, first.plan, Scope(first.id), is_operator=True)


def is_operator(tx: Tx, caller: Caller) -> bool:
    """Return whether the caller is the operator.

    That is who signed in by a link made on the server's machine, and owners and managing keys of the first
    account.
    """
    if caller.is_operator:
        return True
    is_managing = caller.scope.is_account and MANAGE in caller.permissions
    return is_managing and accounts.is_first(tx, caller.account_id) and users.is_like_owner(tx, caller)


def require_operator(tx: Tx, caller: Caller) -> None:
    if not is_operator(tx, caller):
        raise Forbidden("This is for the operator: postroom login-link --operator opens it.")


def record(tx: Tx, caller: Caller, action: str, account_id: str, now: int, target: str = "") -> None:
    """Record an act of the operator in the audit log of the account, with the user who did it."""
    audit.record_by(tx, caller, action, target or account_id, now, within=Scope(account_id))


def create_account(
    tx: Tx, caller: Caller, name: str, plan: Plan, storage_limit_bytes: int | None, token: str, now: int
) -> Account:
    require_operator(tx, caller)
    account = accounts.add(tx, name, plan, now)
    account = accounts.set_storage_limit(tx, account, storage_limit_bytes)
    record(tx, caller, "account.created", account.id, now)
    create_key(tx, caller, account.id, "first key", token, now)
    return account


def change_account(tx: Tx, caller: Caller, account_id: str, change: AccountChange, now: int) -> Account:
    require_operator(tx, caller)
    account = accounts.get(tx, account_id)
    if change.name not in (UNSET, account.name):
        account = accounts.rename(tx, account, change.name)
        record(tx, caller, "account.renamed", account_id, now)
    plan = account.plan if change.plan is UNSET else change.plan
    limit_bytes = change.storage_limit_bytes
    if limit_bytes is UNSET:
        limit_bytes = account.storage_limit_bytes
    if (plan, limit_bytes) != (account.plan, account.storage_limit_bytes):
        account = accounts.set_storage_limit(tx, accounts.set_plan(tx, account, plan), limit_bytes)
        record(tx, caller, "account.plan_changed", account_id, now)
    return account


def change_limits(
    tx: Tx, caller: Caller, account_id: str, asked: Mapping[str, int | None], now: int
) -> Account:
    """Change limits of an account: None restores the server's limit, omitted ones stay."""
    require_operator(tx, caller)
    account = accounts.get(tx, account_id)
    if not asked:
        return account
    merged = {**limits.decode_own(account.limits), **asked}
    own = {name: value for name, value in merged.items() if value is not None}
    record(tx, caller, "account.limits_changed", account_id, now)
    return accounts.set_limits(tx, account, limits.encode_own(own))


def delete_account(tx: Tx, caller: Caller, account_id: str, typed: str, now: int) -> str:
    """Delete an account, confirmed by its name. It is closed at once; upkeep removes its email."""
    require_operator(tx, caller)
    account = accounts.get(tx, account_id)
    if typed.strip() != account.name.strip():
        raise BadRequest(f"Type {account.name} to delete it with all its email.", field="typed")
    account_removal.close(tx, account, now)
    audit.record_by(tx, caller, "account.deleted", account.id, now, before={"name": account.name})
    tx.ring(inboxes.GONE)
    return account.name


def add_login_link(tx: Tx, caller: Caller, account_id: str, token: str, is_operator: bool, now: int) -> None:
    """Create a link that signs in to the account once, with or without the operator's pages."""
    require_operator(tx, caller)
    sessions.add_link(tx, accounts.get(tx, account_id).id, is_operator, token, now)
    record(tx, caller, "login_link.created", account_id, now)


def add_login_link_of_user(
    tx: Tx, caller: Caller, account_id: str, address: str, token: str, now: int
) -> None:
    """Create a sign-in link for a user who has no other way to sign in."""
    require_operator(tx, caller)
    user = users.find_by_email(tx, account_id, users.require_email(address))
    if user is None:
        raise NotFound(f"No user has the address {address}. See: postroom users list")
    sessions.put_link(tx, users.sign_in_grant(user), token, now)
    record(tx, caller, "login_link.created", account_id, now, user.id)


def create_key(tx: Tx, caller: Caller, account_id: str, name: str, token: str, now: int) -> Key:
    """Create a key of the whole account; no other key is recorded as its creator."""
    require_operator(tx, caller)
    accounts.lock(tx, account_id)
    keys.require_room(tx, Scope(account_id))
    key = keys.add(tx, account_id, None, name, token, now)
    record(tx, caller, "key.created", account_id, now, key.id)
    return key


def revoke_key(tx: Tx, caller: Caller, account_id: str, key_id: str, now: int) -> None:
    """Revoke a key, even the last managing one: the operator can create another."""
    require_operator(tx, caller)
    accounts.lock(tx, account_id)
    key_verbs.end(tx, caller, keys.get(tx, account_id, key_id), now)


def pause_account(tx: Tx, caller: Caller, account_id: str, base_url: str, now: int) -> None:
    require_operator(tx, caller)
    scope = Scope(accounts.get(tx, account_id).id)
    record(tx, caller, "pause.begun", account_id, now)
    stop.begin_pause(tx, scope, Decision.of(caller, base_url, now))


def resume_account(tx: Tx, caller: Caller, account_id: str, now: int) -> None:
    require_operator(tx, caller)
    stop.end_pause(tx, Scope(accounts.get(tx, account_id).id), now)
    record(tx, caller, "pause.ended", account_id, now)


def retry_lane(tx: Tx, caller: Caller, lane: str, now: int) -> int:
    require_operator(tx, caller)
    tx.ring(deliveries.BELL)
    return statistics.make_lane_due(tx, lane, now)


def retry_deliveries(tx: Tx, caller: Caller, delivery_ids: list[str], now: int) -> int:
    require_operator(tx, caller)
    tx.ring(deliveries.BELL)
    return statistics.make_due(tx, delivery_ids, now)


def list_messages_of_lane(tx: Tx, caller: Caller, lane: str, limit: int) -> list[tuple[str, str]]:
    """List the account and the id of each message."""
    require_operator(tx, caller)
    return statistics.list_messages_of(tx, lane, limit)


def list_messages_of_deliveries(tx: Tx, caller: Caller, delivery_ids: list[str]) -> list[tuple[str, str]]:
    """List the account and the id of each message."""
    require_operator(tx, caller)
    return statistics.list_messages_of_deliveries(tx, delivery_ids)


def cancel_message(tx: Tx, caller: Caller, account_id: str, message_id: str, base_url: str, now: int) -> None:
    require_operator(tx, caller)
    decide.cancel(tx, Scope(account_id), message_id, Decision.of(caller, base_url, now))
