"""Callers for tests of operations, and what the audit log has of what they did."""

from msgspec.structs import replace

from postroom.accounts import audit, keys
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.people.users import ACTIVE, User
from postroom.accounts.scope import Scope
from postroom.storage.database import Tx
from tests.doubles import START

ADDRESS = "192.0.2.7"
Recorded = tuple[str, str, str, str | None, str | None]  # action, target, address, pod, inbox


def make_caller(tx: Tx, within: Scope, *asked: str, creator: Caller | None = None) -> Caller:
    """By a key of its own, with the usual permissions unless some are given."""
    key = keys.add(
        tx,
        within.account_id,
        within.inbox_id,
        "agent",
        keys.new_token(),
        START,
        pod_id=within.pod_id,
        asked=asked or None,
        creator=creator,
    )
    return caller_of_key(tx, key.id)


def caller_of_key(tx: Tx, key_id: str) -> Caller:
    caller = keys.find_caller_by_id(tx, key_id, START)
    assert caller is not None
    return replace(caller, address=ADDRESS)


def make_user(tx: Tx, account_id: str, name: str, role: str, *pod_ids: str) -> tuple[User, Caller]:
    """And who the person is at the pages."""
    user = users.add(tx, account_id, f"{name}@elsewhere.example", name, role, pod_ids, ACTIVE, START)
    who = replace(
        caller_of_key(tx, user.key_id),
        user_id=user.id,
        role=role,
        session_id="ses_1",
        session_name=name,
        is_person=True,
        scope=Scope(account_id, next(iter(pod_ids), None)),
    )
    return user, who


def recorded(tx: Tx, account_id: str) -> list[Recorded]:
    """Oldest first."""
    found, _ = audit.list_within(tx, Scope(account_id), None, None, None, None, 100, 0)
    return [
        (each.action, each.target, each.address, each.pod_id, each.inbox_id)
        for each in sorted(found, key=lambda entry: entry.id)
    ]
