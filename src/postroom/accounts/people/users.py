"""Users: the people of an account, each with a role, some limited to certain pods."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import keys, names, permissions, pods
from postroom.accounts.keys import Caller, Key
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import SignInGrant
from postroom.errors import BadRequest, Forbidden, LastOwner, Unauthorized, UserExists, no_such
from postroom.storage import database
from postroom.storage.database import Row, Tx, all_of, insert, item_from_row, one_of, update, update_item
from postroom_mail.mime.address import normalize, validate

OWNER, ADMIN, APPROVER, VIEWER = "owner", "admin", "approver", "viewer"
# What each role may do; an admin may do all but change owners.
PERMISSIONS: dict[str, tuple[str, ...]] = {
    OWNER: permissions.ALL,
    ADMIN: permissions.ALL,
    APPROVER: (permissions.READ, permissions.DRAFT, permissions.SEND, permissions.APPROVE),
    VIEWER: permissions.READING,
}
ROLES = tuple(PERMISSIONS)
INVITED, ACTIVE = "invited", "active"
USERS_OF_AN_ACCOUNT = 1000
PODS_OF_A_USER = 50

_COLUMNS = (
    "users.id, users.account_id, users.email, users.name, users.role, users.pod_ids, users.state,"
    " users.key_id, users.created_at, users.last_seen_at,"
    " (select count(*) from passkeys where passkeys.user_id = users.id) as passkeys"
)


class User(Struct, frozen=True):
    id: str
    account_id: str
    email: str
    name: str
    role: str
    pod_ids: tuple[str, ...]  # none: the whole account
    state: str
    key_id: str
    passkeys: int
    created_at: int
    last_seen_at: int | None

    @classmethod
    def from_row(cls, row: Row) -> "User":
        return item_from_row(cls, row, pod_ids=tuple(row["pod_ids"].split()), passkeys=int(row["passkeys"]))


def require_email(address: str) -> str:
    """Returns the normalized form."""
    try:
        return normalize(validate(address))
    except ValueError as error:
        raise BadRequest(f"email is not an address: {error}", field="email") from None


def require_role(role: str) -> None:
    if role not in PERMISSIONS:
        raise BadRequest(f"role must be one of {', '.join(ROLES)}.", field="role")


def require_pods(tx: Tx, account_id: str, role: str, asked: Sequence[str]) -> tuple[str, ...]:
    """Returns their ids. An owner always has the whole account."""
    if asked and role == OWNER:
        raise BadRequest("An owner has the whole account: podIds must be empty.", field="podIds")
    if len(asked) > PODS_OF_A_USER:
        raise BadRequest(f"podIds has at most {PODS_OF_A_USER} pods.", field="podIds")
    found = [pods.find(tx, Scope(account_id), pod_id) for pod_id in asked]
    known = [pod.id for pod in found if pod is not None]
    if len(known) < len(asked):
        raise BadRequest("podIds names a pod that does not exist. GET /v1/pods lists them.", field="podIds")
    return tuple(dict.fromkeys(known))


def add(
    tx: Tx,
    account_id: str,
    email: str,
    name: str,
    role: str,
    pod_ids: Sequence[str],
    state: str,
    now: int,
) -> User:
    """Creates a key that stands for the user; nobody knows its token."""
    names.require_clean(name, "name")
    require_role(role)
    if find_by_email(tx, account_id, email) is not None:
        raise UserExists("There is already a user with this address: change that user.", field="email")
    if count(tx, account_id) >= USERS_OF_AN_ACCOUNT:
        raise BadRequest(f"An account has at most {USERS_OF_AN_ACCOUNT} users. Delete one first.")
    shown, token, held = name or email, keys.new_token(), PERMISSIONS[role]
    key = keys.add(tx, account_id, None, shown, token, now, asked=held, kind=keys.USER)
    columns: dict[str, Any] = {
        "id": ids.new(ids.USER, now),
        "account_id": account_id,
        "email": email,
        "name": name,
        "role": role,
        "state": state,
        "key_id": key.id,
        "created_at": now,
    }
    insert(tx, "users", pod_ids=" ".join(pod_ids), **columns)
    return User(pod_ids=tuple(pod_ids), passkeys=0, last_seen_at=None, **columns)


def find(tx: Tx, user_id: str) -> User | None:
    row = ids.is_id(ids.USER, user_id) and tx.one(
        f"select {_COLUMNS} from users where users.id = :id", id=user_id
    )
    return User.from_row(row) if row else None


def get(tx: Tx, account_id: str, user_id: str) -> User:
    user = find(tx, user_id)
    if user is None or user.account_id != account_id:
        raise no_such("user")
    return user


def find_by_email(tx: Tx, account_id: str, email: str) -> User | None:
    row = tx.one(
        f"select {_COLUMNS} from users where users.account_id = :account_id and users.email = :email",
        account_id=account_id,
        email=email,
    )
    return None if row is None else User.from_row(row)


def list_active_of_address(tx: Tx, email: str, limit: int) -> list[User]:
    """List the active users with this address in all accounts: one person may work for several."""
    rows = tx.all(
        f"select {_COLUMNS} from users where users.email = :email and users.state = 'active'"
        " order by users.created_at limit :limit",
        email=email,
        limit=limit,
    )
    return [User.from_row(row) for row in rows]


def find_of_address(tx: Tx, email: str) -> User | None:
    """Return a user with this address in any account: one who can sign in if possible, then the oldest."""
    row = tx.one(
        f"select {_COLUMNS} from users where users.email = :email"
        " order by case when users.state = 'active' then 0 else 1 end, users.created_at limit 1",
        email=email,
    )
    return None if row is None else User.from_row(row)


def find_of_keys(tx: Tx, account_id: str, key_ids: Sequence[str]) -> str | None:
    """Return the id of the user who acts through one of these keys."""
    is_wanted, wanted = one_of("key_id", key_ids)
    row = tx.one(
        f"select id from users where account_id = :account_id and {is_wanted} limit 1",
        account_id=account_id,
        **wanted,
    )
    return None if row is None else str(row["id"])


def list_of_account(tx: Tx, account_id: str, limit: int, offset: int) -> list[User]:
    rows = tx.all(
        f"select {_COLUMNS} from users where users.account_id = :id order by users.created_at, users.id"
        " limit :limit offset :offset",
        id=account_id,
        limit=limit,
        offset=offset,
    )
    return [User.from_row(row) for row in rows]


def names_of(tx: Tx, user_ids: Sequence[str]) -> dict[str, str]:
    """Return the name of each user, or the address of one without."""
    rows = all_of(tx, "select id, name, email from users where :wanted", "id", user_ids)
    return {row["id"]: row["name"] or row["email"] for row in rows}


def count(tx: Tx, account_id: str) -> int:
    return database.count(tx, "select count(*) as number from users where account_id = :id", id=account_id)


def has_owner(tx: Tx, account_id: str) -> bool:
    return _count_owners(tx, account_id) > 0


def _count_owners(tx: Tx, account_id: str) -> int:
    """Counts only owners who can sign in."""
    owners = "from users where account_id = :id and role = 'owner' and state = 'active'"
    return database.count(tx, f"select count(*) as number {owners}", id=account_id)


def require_another_owner(tx: Tx, user: User) -> None:
    is_active_owner = user.role == OWNER and user.state == ACTIVE
    if is_active_owner and _count_owners(tx, user.account_id) < 2:
        raise LastOwner("This is the last owner of the account. Make somebody else an owner first.")


def put(tx: Tx, user: User) -> None:
    """Stores what may change, and the resulting permissions of the user's key."""
    names.require_clean(user.name, "name")
    update_item(tx, "users", user, ("name", "role", "state"), pod_ids=" ".join(user.pod_ids))
    held = " ".join(PERMISSIONS[user.role])
    update(tx, "keys", user.key_id, permissions=held, name=user.name or user.email)


def activate(tx: Tx, user: User, name: str) -> User:
    """Called when the user has proven to own the address."""
    active = replace(user, state=ACTIVE, name=name or user.name)
    put(tx, active)
    return active


def remove(tx: Tx, user: User) -> None:
    """Removes all that belongs to the user too: sessions, passkeys, links, grants and keys."""
    _end_keys(tx, [key.id for key in list_keys_of(tx, user)] + [user.key_id])
    for table in ("passkeys", "mail_links", "login_links", "push_subscriptions", "sessions", "oauth_codes"):
        tx.run(f"delete from {table} where user_id = :id", id=user.id)
    tx.run("delete from device_codes where maker_id = :key_id", key_id=user.key_id)
    tx.run("delete from users where id = :id", id=user.id)


def sign_in_grant(user: User, is_operator: bool = False) -> SignInGrant:
    """Return the grant for someone who authenticated as this user."""
    pod_id = next(iter(user.pod_ids), None)
    return SignInGrant(
        user.account_id, user.key_id, is_operator, by_key=False, user_id=user.id, pod_id=pod_id
    )


def end_what_exceeds(tx: Tx, user: User) -> None:
    """End the sessions, and the keys that exceed what the user has now, after a change of role or pods."""
    tx.run("delete from sessions where user_id = :id", id=user.id)
    left = permissions.with_notes(PERMISSIONS[user.role])
    made = list_keys_of(tx, user)
    _end_keys(
        tx, [key.id for key in made if not set(key.permissions) <= left or not _is_within(tx, user, key)]
    )


def _is_within(tx: Tx, user: User, key: Key) -> bool:
    if not user.pod_ids:
        return True
    row = tx.one("select pod_id from inboxes where id = :id", id=key.inbox_id) if key.inbox_id else None
    return (key.pod_id if row is None else row["pod_id"]) in user.pod_ids


def list_keys_of(tx: Tx, user: User) -> list[Key]:
    """List the keys that the user made or authorized, and the keys made by those."""
    rows = tx.all(
        "select * from keys where account_id = :account_id and ' ' || lineage || ' ' like :within",
        account_id=user.account_id,
        within=f"% {user.key_id} %",
    )
    return [Key.from_row(row) for row in rows]


def _end_keys(tx: Tx, key_ids: list[str]) -> None:
    for key_id in key_ids:
        tx.run("delete from sessions where key_id = :id", id=key_id)
        tx.run("delete from oauth_grants where key_id = :id", id=key_id)
        tx.run("delete from keys where id = :id", id=key_id)


def is_like_owner(tx: Tx, caller: Caller) -> bool:
    """Return whether the caller is an owner, or a key made by no user but an owner.

    An admin gains nothing by making a key.
    """
    if caller.role is not None:
        return caller.role == OWNER
    if not caller.lineage:
        return True
    is_wanted, wanted = one_of("key_id", caller.lineage)
    row = tx.one(f"select 1 as found from users where {is_wanted} and role <> 'owner' limit 1", **wanted)
    return row is None


def require_may_give(tx: Tx, caller: Caller, role: str) -> None:
    """Refuse to let anyone give, change or take away more than they have."""
    may_all = set(PERMISSIONS[role]) <= caller.permissions
    if not may_all or (role == OWNER and not is_like_owner(tx, caller)):
        raise Forbidden(f"You cannot give or remove the role {role}: it may do more than you.")


def require_still(tx: Tx, caller: Caller, permission: str) -> None:
    """Require the permission again.

    A user authenticated a moment ago may have lost the role or the pod meanwhile.
    """
    if caller.user_id is None:
        return
    user = find(tx, caller.user_id)
    if user is None or user.state != ACTIVE:
        raise Unauthorized("This user was removed. Ask an owner for a new invitation.")
    has_pod = not user.pod_ids or caller.pod_id in user.pod_ids
    if permission not in PERMISSIONS[user.role] or not has_pod:
        raise Forbidden("Your role has changed: you may no longer do that. Ask an owner.")
