"""Sessions: a signed-in browser on the dashboard; and one-time links that open a session."""

import secrets
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import keys, names, permissions
from postroom.accounts.keys import Caller, Key
from postroom.accounts.scope import Scope
from postroom.clock import DAY, MINUTE
from postroom.errors import NotFound
from postroom.storage.database import Row, Tx, all_of, insert, insert_item, item_from_row

LIFETIME = 14 * DAY
LINK_LIFETIME = DAY
USE_NOTED_AFTER = MINUTE
SHOWN_AGENT_CHARACTERS = 200
SESSIONS_LISTED = 100
LINK, KEY, PASSKEY, OPENID = "link", "key", "passkey", "openid"  # ways to sign in
_POD = "coalesce(sessions.pod_id, keys.pod_id)"


class Session(Struct, frozen=True):
    id: str
    account_id: str
    key_id: str
    name: str
    is_operator: bool
    by_key: bool  # opened with the key itself: it counts as that key, not as a person
    address: str
    user_agent: str
    created_at: int
    last_used_at: int
    expires_at: int
    user_id: str | None = None
    pod_id: str | None = None  # where a user with several pods works
    method: str = ""  # how the person had signed in

    @classmethod
    def from_row(cls, row: Row) -> "Session":
        return item_from_row(cls, row, is_operator=bool(row["is_operator"]), by_key=bool(row["by_key"]))


class SignInOrigin(Struct, frozen=True):
    """Where a sign-in comes from, as far as known."""

    address: str
    user_agent: str


class SignInGrant(Struct, frozen=True):
    """A one-time link, a key, or how a user was authenticated."""

    account_id: str
    key_id: str
    is_operator: bool
    by_key: bool
    user_id: str | None = None
    pod_id: str | None = None  # the first of the user's own pods
    method: str = LINK


def new_token() -> str:
    return secrets.token_urlsafe(32)


def add(tx: Tx, grant: SignInGrant, name: str, visitor: SignInOrigin, token: str, now: int) -> Session:
    """Open a session for someone who has proven to hold the key, or the link made for it."""
    names.require_clean(name, "name")
    session = Session(
        id=ids.new(ids.SESSION, now),
        account_id=grant.account_id,
        key_id=grant.key_id,
        name=name,
        is_operator=grant.is_operator,
        by_key=grant.by_key,
        address=visitor.address,
        user_agent=visitor.user_agent[:SHOWN_AGENT_CHARACTERS],
        created_at=now,
        last_used_at=now,
        expires_at=now + LIFETIME,
        user_id=grant.user_id,
        pod_id=grant.pod_id,
        method=KEY if grant.by_key else grant.method,
    )
    insert_item(
        tx,
        "sessions",
        session,
        token_hash=keys.hash_token(token),
        is_operator=int(session.is_operator),
        by_key=int(session.by_key),
    )
    return session


def find(tx: Tx, token: str, now: int) -> tuple[Session, Caller] | None:
    """Return the session with its caller. It ends with its key and has the key's current permissions."""
    return _find(tx, "token_hash", keys.hash_token(token), now)


def find_by_id(tx: Tx, session_id: str, now: int) -> tuple[Session, Caller] | None:
    """Return the session for a request its person made a moment ago, with the current permissions."""
    return _find(tx, "id", session_id, now)


def _find(tx: Tx, column: str, value: str, now: int) -> tuple[Session, Caller] | None:
    row = tx.one(
        "select sessions.*, users.role, users.pod_ids, users.name as user_name, users.email, users.state"
        " from sessions left join users on users.id = sessions.user_id"
        f" where sessions.{column} = :value",
        value=value,
    )
    if row is None or row["expires_at"] <= now:
        return None
    session = Session.from_row(row)
    caller = keys.find_caller_by_id(tx, session.key_id, now)
    if caller is None:
        return None
    who = replace(
        caller,
        session_id=session.id,
        session_name=session.name,
        is_person=not session.by_key,
        is_operator=session.is_operator,
        sign_in_method=session.method,
    )
    return (session, who) if session.user_id is None else _of_user(session, who, row)


def _of_user(session: Session, caller: Caller, row: Row) -> tuple[Session, Caller] | None:
    """Return a user's session with its caller. A user with pods works in one of them at a time."""
    pod_ids = (row["pod_ids"] or "").split()
    has_place = session.pod_id in pod_ids if pod_ids else session.pod_id is None
    if row["state"] != "active" or not has_place:
        return None
    who = replace(
        caller,
        session_name=row["user_name"] or row["email"],
        user_id=session.user_id,
        role=row["role"],
        scope=Scope(caller.account_id, session.pod_id),
    )
    return session, who


def choose_pod(tx: Tx, session_id: str, pod_id: str) -> None:
    """Choose the pod of a session.

    The caller has checked that it is one of the user's: in another the session is invalid.
    """
    tx.run("update sessions set pod_id = :pod_id where id = :id", pod_id=pod_id, id=session_id)


def mark_used(tx: Tx, session_id: str, now: int) -> None:
    tx.run("update sessions set last_used_at = :now where id = :id", now=now, id=session_id)
    tx.run(
        "update users set last_seen_at = :now where id = (select user_id from sessions where id = :id)",
        now=now,
        id=session_id,
    )


def find_valid(tx: Tx, session_ids: Sequence[str], now: int) -> set[str]:
    """Return those sessions that have neither ended nor expired and whose key is still valid."""
    rows = all_of(
        tx,
        "select sessions.id from sessions join keys on keys.id = sessions.key_id"
        " where :wanted and sessions.expires_at > :now"
        " and (keys.expires_at is null or keys.expires_at > :now)",
        "sessions.id",
        session_ids,
        now=now,
    )
    return {row["id"] for row in rows}


def list_within(tx: Tx, scope: Scope, now: int) -> list[Session]:
    """List the sessions, newest first. A person of one pod sees those of the same pod."""
    of_pod = "" if scope.pod_id is None else f" and {_POD} = :pod_id"
    rows = tx.all(
        "select sessions.* from sessions join keys on keys.id = sessions.key_id"
        f" where sessions.account_id = :account_id and sessions.expires_at > :now{of_pod}"
        " order by sessions.created_at desc limit :limit",
        account_id=scope.account_id,
        now=now,
        limit=SESSIONS_LISTED,
        **({} if scope.pod_id is None else {"pod_id": scope.pod_id}),
    )
    return [Session.from_row(row) for row in rows]


def remove(tx: Tx, scope: Scope, session_id: str) -> None:
    row = ids.is_id(ids.SESSION, session_id) and tx.one(
        f"select sessions.account_id, {_POD} as pod_id from sessions"
        " left join keys on keys.id = sessions.key_id where sessions.id = :id",
        id=session_id,
    )
    if not row or row["account_id"] != scope.account_id or scope.pod_id not in (None, row["pod_id"]):
        raise NotFound("No such session. It may have ended.")
    tx.run("delete from sessions where id = :id", id=session_id)


def remove_others(tx: Tx, user_id: str, session_id: str) -> int:
    """Remove all sessions of a user except this one."""
    return tx.run(
        "delete from sessions where user_id = :user_id and id <> :id", user_id=user_id, id=session_id
    )


def add_link(tx: Tx, account_id: str, is_operator: bool, token: str, now: int) -> None:
    """Add a sign-in link for the account's oldest key with all permissions."""
    key = _find_full_key(tx, account_id, now)
    if key is None:
        raise NotFound("This account has no key with every permission. Create one first.")
    put_link(tx, SignInGrant(account_id, key.id, is_operator, by_key=False), token, now)


def put_link(tx: Tx, grant: SignInGrant, token: str, now: int) -> None:
    insert(
        tx,
        "login_links",
        token_hash=keys.hash_token(token),
        account_id=grant.account_id,
        key_id=grant.key_id,
        is_operator=int(grant.is_operator),
        user_id=grant.user_id,
        created_at=now,
        expires_at=now + LINK_LIFETIME,
    )


def _find_full_key(tx: Tx, account_id: str, now: int) -> Key | None:
    for key in keys.list_of_account(tx, account_id):
        is_whole = key.scope.is_account and set(permissions.ALL) <= set(key.permissions)
        if is_whole and key.kind == keys.PROGRAM and (key.expires_at is None or key.expires_at > now):
            return key
    return None


def take_link(tx: Tx, token: str, now: int) -> SignInGrant | None:
    """Works only once."""
    row = tx.one(
        "delete from login_links where token_hash = :token_hash"
        " returning account_id, key_id, is_operator, user_id, expires_at",
        token_hash=keys.hash_token(token),
    )
    grant = _to_grant(row, now)
    return None if grant is None or keys.find_caller_by_id(tx, grant.key_id, now) is None else grant


def find_link(tx: Tx, token: str, now: int) -> SignInGrant | None:
    """Does not use the link up."""
    row = tx.one(
        "select * from login_links where token_hash = :token_hash", token_hash=keys.hash_token(token)
    )
    return _to_grant(row, now)


def _to_grant(row: Row | None, now: int) -> SignInGrant | None:
    if row is None or row["expires_at"] <= now:
        return None
    is_operator, user_id = bool(row["is_operator"]), row["user_id"]
    return SignInGrant(row["account_id"], row["key_id"], is_operator, by_key=False, user_id=user_id)
