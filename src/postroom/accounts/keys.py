"""API keys: random, stored only as a hash, for a whole account, a pod or one inbox."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import actors, names, permissions
from postroom.accounts.actors import Actor
from postroom.accounts.scope import Scope
from postroom.config import Plan
from postroom.errors import ApiKeyLimitReached, no_such
from postroom.limits import KEYS_OF_AN_INBOX
from postroom.storage.database import (
    Row,
    Tx,
    all_of,
    count,
    insert_item,
    item_from_row,
    one_of,
    update,
    update_item,
)

PREFIX = "pr_"
SHOWN_PREFIX_CHARACTERS = 7
KEYS_OF_AN_ACCOUNT = 100
ALL_OF_THEM = 2**31
# What a key represents: a program, a person, or a program that a person authorized.
PROGRAM, USER, OAUTH = "key", "user", "oauth"
NEVER = 2**62
GUARD_OF_OAUTH = "hold"
IS_LISTED = "kind <> 'user'"
V0_RESOURCE = "/v0"  # where a key with permissions of the /v0 interface is valid, and nowhere else


class Key(Struct, frozen=True):
    id: str
    account_id: str
    inbox_id: str | None
    name: str
    token_prefix: str
    last4: str
    created_at: int
    last_used_at: int | None
    pod_id: str | None
    permissions: tuple[str, ...]
    expires_at: int | None
    created_by: str | None  # the key that made it
    lineage: tuple[str, ...] = ()  # all keys that it comes from
    approval: str | None = None
    limits: str | None = None
    budget_id: str | None = None  # the key whose budget it shares
    kind: str = PROGRAM
    resource: str | None = None  # the only resource where its token is valid
    words: str | None = None  # permissions of the /v0 interface; None: only `permissions` count
    origin_guard: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id, self.inbox_id)

    @classmethod
    def from_row(cls, row: Row) -> "Key":
        lists = {name: tuple(row[name].split()) for name in ("permissions", "lineage")}
        return item_from_row(cls, row, **lists)


class Caller(Struct, frozen=True):
    """Who makes a request."""

    key_id: str
    account_id: str
    account_name: str
    plan: Plan
    scope: Scope
    permissions: frozenset[str] = frozenset(permissions.ALL)
    key_name: str = ""
    lineage: tuple[str, ...] = ()  # the keys it descends from, also deleted ones
    approval: str | None = None
    limits: str | None = None
    session_id: str | None = None  # set: a session on the dashboard
    is_person: bool = False  # signed in as a person; a session opened with a key counts as that key
    session_name: str = ""
    shared_budget_id: str | None = None
    expires_at: int | None = None
    address: str = ""  # the client's network address; known for changes
    user_agent: str = ""  # of the browser or client, as it names itself
    asked_at: int | None = None  # when a person clicked, for what is done later
    trace_id: str = ""  # of the trace that the request belongs to
    sign_in_method: str = ""  # how the person of the session had signed in
    is_operator: bool = False  # signed in by a link made on the server's machine, or by a command there
    user_id: str | None = None  # set: a user of the account, on the dashboard
    role: str | None = None  # of that user
    resource: str | None = None  # the only resource where the token is valid
    account_limits: str | None = None  # what the operator set for this account
    words: frozenset[str] | None = None  # its permissions of the /v0 interface; None: `permissions` count
    origin_guard: str | None = None

    @property
    def budget_id(self) -> str:
        """The key for which its sends are counted: the one whose limits it has."""
        return self.shared_budget_id or self.key_id

    @property
    def is_bound(self) -> bool:
        """Return whether the key itself is held for approval, limited or guarded; a person is not."""
        rules = (self.approval, self.limits, self.origin_guard)
        return not self.is_person and any(each is not None for each in rules)

    @property
    def actor(self) -> Actor:
        if self.user_id is not None:
            return Actor(actors.USER, self.user_id, self.session_name)
        if self.session_id is not None:
            return Actor(actors.SESSION, self.session_id, self.session_name)
        if self.is_operator:
            return actors.THE_OPERATOR
        return Actor(actors.KEY, self.key_id, self.key_name)

    @property
    def inbox_id(self) -> str | None:
        """Return the only inbox in the key's scope, if any."""
        return self.scope.inbox_id

    @property
    def pod_id(self) -> str | None:
        """Return the only pod in the key's scope, if any."""
        return self.scope.pod_id


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def add(
    tx: Tx,
    account_id: str,
    inbox_id: str | None,
    name: str,
    token: str,
    now: int,
    *,
    pod_id: str | None = None,
    asked: Iterable[str] | None = None,
    expires_at: int | None = None,
    creator: Caller | None = None,
    kind: str = PROGRAM,
    resource: str | None = None,
) -> Key:
    """Add a key. `asked` are its permissions; the default are the usual ones for its scope."""
    names.require_clean(name, "name")
    key = Key(
        id=ids.new(ids.KEY, now),
        account_id=account_id,
        inbox_id=inbox_id,
        name=name,
        token_prefix=token[:SHOWN_PREFIX_CHARACTERS],
        last4=token[-4:],
        created_at=now,
        last_used_at=None,
        pod_id=pod_id,
        permissions=permissions.read(asked, is_of_an_inbox=inbox_id is not None),
        expires_at=expires_at,
        created_by=None,
        kind=kind,
        resource=resource,
        origin_guard=GUARD_OF_OAUTH if kind == OAUTH else None,
    )
    if creator is not None:
        key = _bound_as(creator, key)
    insert_item(
        tx,
        "keys",
        key,
        token_hash=hash_token(token),
        permissions=" ".join(key.permissions),
        lineage=" ".join(key.lineage),
    )
    return key


def _bound_as(creator: Caller, key: Key) -> Key:
    """Return the new key with the approval rules and limits of the key that made it."""
    return replace(
        key,
        created_by=creator.key_id,
        lineage=(*creator.lineage, creator.key_id),
        approval=creator.approval,
        limits=creator.limits,
        origin_guard=key.origin_guard or creator.origin_guard,
        budget_id=None if creator.limits is None else creator.budget_id,
    )


OF_CALLER = (
    "keys.id, keys.account_id, keys.pod_id, keys.inbox_id, keys.token_hash, keys.permissions,"
    " keys.expires_at, keys.name as key_name, keys.lineage, keys.approval, keys.limits, keys.budget_id,"
    " keys.resource, keys.words, keys.origin_guard, accounts.name, accounts.plan,"
    " accounts.limits as account_limits,"
    # A grant ends with the key of the person who allowed it; null if that was revoked.
    f" case when keys.kind = '{OAUTH}' then (select coalesce(maker.expires_at, {NEVER}) from keys as maker"
    f" where maker.id = keys.created_by) else {NEVER} end as maker_expires_at"
)
WITH_ACCOUNT = "keys join accounts on accounts.id = keys.account_id"


def names_of(tx: Tx, account_id: str, key_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those keys that still exist."""
    rows = all_of(
        tx,
        "select id, name from keys where account_id = :account_id and :wanted",
        "id",
        sorted(key_ids),
        account_id=account_id,
    )
    return {row["id"]: row["name"] or "a key without a name" for row in rows}


def find(tx: Tx, account_id: str, key_id: str) -> Key | None:
    row = ids.is_id(ids.KEY, key_id) and tx.one(
        "select * from keys where id = :id and account_id = :account_id", id=key_id, account_id=account_id
    )
    return Key.from_row(row) if row else None


def get(tx: Tx, account_id: str, key_id: str) -> Key:
    key = find(tx, account_id, key_id)
    if key is None or key.kind == USER:
        raise no_such("key")
    return key


def put(tx: Tx, key: Key) -> None:
    """Stores what may change of a key. Keys that share its budget get the same limits."""
    names.require_clean(key.name, "name")
    plain = ("name", "approval", "limits", "budget_id", "expires_at", "origin_guard")
    update_item(tx, "keys", key, plain, permissions=" ".join(key.permissions))
    shared = "update keys set limits = :limits where account_id = :account_id and budget_id = :id"
    tx.run(shared, limits=key.limits, account_id=key.account_id, id=key.id)


def set_v0_permissions(tx: Tx, key_id: str, words: Iterable[str]) -> None:
    """Limits the key to these permissions, and to the /v0 interface."""
    update(tx, "keys", key_id, words=" ".join(sorted(words)), resource=V0_RESOURCE)


def find_caller(tx: Tx, token: str, now: int, *, may_be_bound: bool = False) -> Caller | None:
    """Return the caller with this token. A token bound to one resource is valid only if `may_be_bound`."""
    token_hash, of_token = hash_token(token), "keys.token_hash = :token_hash"
    row = tx.one(f"select {OF_CALLER} from {WITH_ACCOUNT} where {of_token}", token_hash=token_hash)
    caller = None if row is None else to_caller(row, token_hash, now)
    return None if caller is not None and caller.resource is not None and not may_be_bound else caller


def to_caller(row: Row, token_hash: str, now: int) -> Caller | None:
    """Return None if the row does not match the token, or the key has expired."""
    return _to_caller(row, now) if hmac.compare_digest(row["token_hash"], token_hash) else None


def find_caller_by_id(tx: Tx, key_id: str, now: int) -> Caller | None:
    """Return the caller of a key that a person has proven to own before."""
    row = tx.one(f"select {OF_CALLER} from {WITH_ACCOUNT} where keys.id = :id", id=key_id)
    return None if row is None else _to_caller(row, now)


def _to_caller(row: Row, now: int) -> Caller | None:
    """Return None if it has expired, or the key that a grant comes from has ended."""
    if row["expires_at"] is not None and row["expires_at"] <= now:
        return None
    if row["maker_expires_at"] is None or row["maker_expires_at"] <= now:
        return None
    who = row["id"], row["account_id"], row["name"], row["plan"]
    return Caller(
        *who,
        Scope(row["account_id"], row["pod_id"], row["inbox_id"]),
        frozenset(row["permissions"].split()),
        row["key_name"],
        tuple(row["lineage"].split()),
        row["approval"],
        row["limits"],
        shared_budget_id=row["budget_id"],
        expires_at=row["expires_at"],
        resource=row["resource"],
        account_limits=row["account_limits"],
        words=None if row["words"] is None else frozenset(row["words"].split()),
        origin_guard=row["origin_guard"],
    )


def find_allowed(tx: Tx, key_ids: Sequence[str], either: Sequence[str], now: int) -> set[str]:
    """Return those keys that are neither revoked nor expired and have one of the permissions."""
    found: set[str] = set()
    for start in range(0, len(key_ids), 500):
        is_wanted, wanted = one_of("id", key_ids[start : start + 500])
        rows = tx.all(f"select id, permissions, expires_at from keys where {is_wanted}", **wanted)
        valid = (row for row in rows if row["expires_at"] is None or row["expires_at"] > now)
        found |= {row["id"] for row in valid if not set(either).isdisjoint(row["permissions"].split())}
    return found


def list_of_account(tx: Tx, account_id: str, limit: int = ALL_OF_THEM, offset: int = 0) -> list[Key]:
    rows = tx.all(
        f"select * from keys where account_id = :id and {IS_LISTED} order by created_at, id"
        " limit :limit offset :offset",
        id=account_id,
        limit=limit,
        offset=offset,
    )
    return [Key.from_row(row) for row in rows]


def count_of_account(tx: Tx, account_id: str) -> int:
    return count(
        tx, f"select count(*) as number from keys where account_id = :id and {IS_LISTED}", id=account_id
    )


def list_of(tx: Tx, within: Scope, limit: int, offset: int) -> tuple[list[Key], int]:
    """List the keys with exactly this scope."""
    wanted, params = _exactly(within)
    rows = tx.all(
        f"select * from keys where {wanted} order by created_at, id limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **params,
    )
    return [Key.from_row(row) for row in rows], count_of(tx, within)


def count_of(tx: Tx, within: Scope) -> int:
    wanted, params = _exactly(within)
    return count(tx, f"select count(*) as number from keys where {wanted}", **params)


def _exactly(within: Scope) -> tuple[str, dict[str, object]]:
    if within.inbox_id is not None:
        return "inbox_id = :id", {"id": within.inbox_id}
    if within.pod_id is not None:
        return "pod_id = :id and inbox_id is null", {"id": within.pod_id}
    return f"account_id = :id and pod_id is null and inbox_id is null and {IS_LISTED}", {
        "id": within.account_id
    }


def require_room(tx: Tx, within: Scope) -> None:
    most = KEYS_OF_AN_ACCOUNT if within.is_account else KEYS_OF_AN_INBOX
    if count_of(tx, within) >= most:
        raise ApiKeyLimitReached(f"There are at most {most} keys of this kind. Delete one first.")


def remove(tx: Tx, key_id: str) -> None:
    """Remove a key. If two callers remove it at once, one gets NotFound."""
    if not (ids.is_id(ids.KEY, key_id) and tx.run("delete from keys where id = :id", id=key_id)):
        raise no_such("key")


def get_of(tx: Tx, within: Scope, key_id: str) -> Key:
    """Return a key with exactly this scope."""
    wanted, params = _exactly(within)
    row = ids.is_id(ids.KEY, key_id) and tx.one(
        f"select * from keys where id = :key_id and {wanted}", key_id=key_id, **params
    )
    if not row:
        raise no_such("key")
    return Key.from_row(row)


def remove_all_of_inbox(tx: Tx, inbox_id: str) -> None:
    tx.run("delete from keys where inbox_id = :inbox_id", inbox_id=inbox_id)


def is_any_used(tx: Tx, account_id: str) -> bool:
    """Return whether a key of the account was ever used."""
    row = tx.one(
        "select 1 as found from keys where account_id = :id and last_used_at is not null limit 1",
        id=account_id,
    )
    return row is not None


def mark_used(tx: Tx, used_at: dict[str, int]) -> None:
    for key_id, moment in used_at.items():
        update(tx, "keys", key_id, last_used_at=moment)


def renew(tx: Tx, key_id: str, token: str, expires_at: int) -> None:
    """Give the key a new token and make the old one invalid."""
    shown = {"token_prefix": token[:SHOWN_PREFIX_CHARACTERS], "last4": token[-4:]}
    update(tx, "keys", key_id, token_hash=hash_token(token), expires_at=expires_at, **shown)


def hash_token(token: str) -> str:
    """Return the hash of a token. It has 256 random bits, so a fast hash is as strong as a slow one."""
    return hashlib.sha256(token.encode()).hexdigest()
