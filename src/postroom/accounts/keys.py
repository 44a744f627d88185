"""API keys: random, stored only as a hash, for a whole account, a pod or one inbox of it."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from postroom import ids
from postroom.accounts import actors, names, permissions
from postroom.accounts.actors import Actor
from postroom.accounts.reach import Reach
from postroom.config import Plan
from postroom.errors import ApiKeyLimitReached, NotFound
from postroom.storage.database import Row, Tx, one_of

PREFIX = "pr_"
SHOWN_PREFIX_CHARACTERS = 7
KEYS_PER_INBOX = 20


@dataclass(frozen=True, slots=True)
class Key:
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

    @classmethod
    def from_row(cls, row: Row) -> "Key":
        return cls(
            row["id"],
            row["account_id"],
            row["inbox_id"],
            row["name"],
            row["token_prefix"],
            row["last4"],
            row["created_at"],
            row["last_used_at"],
            row["pod_id"],
            tuple(row["permissions"].split()),
            row["expires_at"],
            row["created_by"],
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request speaks for."""

    key_id: str
    account_id: str
    account_name: str
    plan: Plan
    reach: Reach
    permissions: frozenset[str] = frozenset(permissions.ALL)
    key_name: str = ""
    lineage: tuple[str, ...] = ()  # the keys it comes from, also those that are gone
    approval: str | None = None
    limits: str | None = None
    session_id: str | None = None  # set: a person, signed in with the key
    session_name: str = ""

    @property
    def actor(self) -> Actor:
        if self.session_id is not None:
            return Actor(actors.SESSION, self.session_id, self.session_name)
        return Actor(actors.KEY, self.key_id, self.key_name)

    @property
    def inbox_id(self) -> str | None:
        """Set: the key reaches this inbox alone."""
        return self.reach.inbox_id

    @property
    def pod_id(self) -> str | None:
        """Set: the key reaches this pod alone."""
        return self.reach.pod_id


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
    creator: "Caller | None" = None,
) -> Key:
    """`asked` are permissions; without, those that are usual for its reach."""
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
        created_by=None if creator is None else creator.key_id,
    )
    tx.run(
        "insert into keys (id, account_id, pod_id, inbox_id, name, token_hash, token_prefix, last4,"
        " permissions, expires_at, created_by, lineage, created_at) values (:id, :account_id, :pod_id,"
        " :inbox_id, :name, :token_hash, :token_prefix, :last4, :permissions, :expires_at, :created_by,"
        " :lineage, :now)",
        id=key.id,
        account_id=account_id,
        inbox_id=inbox_id,
        name=name,
        token_hash=_hash(token),
        token_prefix=key.token_prefix,
        last4=key.last4,
        pod_id=pod_id,
        permissions=" ".join(key.permissions),
        expires_at=expires_at,
        created_by=key.created_by,
        lineage="" if creator is None else " ".join((*creator.lineage, creator.key_id)),
        now=now,
    )
    return key


WITH_ACCOUNT = (
    "select keys.id, keys.account_id, keys.pod_id, keys.inbox_id, keys.token_hash, keys.permissions,"
    " keys.expires_at, keys.name as key_name, keys.lineage, keys.approval, keys.limits,"
    " accounts.name, accounts.plan"
    " from keys join accounts on accounts.id = keys.account_id"
)


def find_caller(tx: Tx, token: str, now: int) -> Caller | None:
    token_hash = _hash(token)
    row = tx.one(f"{WITH_ACCOUNT} where keys.token_hash = :token_hash", token_hash=token_hash)
    if row is None or not hmac.compare_digest(row["token_hash"], token_hash):
        return None
    return _to_caller(row, now)


def find_caller_by_id(tx: Tx, key_id: str, now: int) -> Caller | None:
    """For a person who proved before that the key is his."""
    row = tx.one(f"{WITH_ACCOUNT} where keys.id = :id", id=key_id)
    return None if row is None else _to_caller(row, now)


def _to_caller(row: Row, now: int) -> Caller | None:
    """None when it has expired."""
    if row["expires_at"] is not None and row["expires_at"] <= now:
        return None
    reach = Reach(row["account_id"], row["pod_id"], row["inbox_id"])
    held = frozenset(row["permissions"].split())
    return Caller(
        row["id"],
        row["account_id"],
        row["name"],
        row["plan"],
        reach,
        held,
        row["key_name"],
        tuple(row["lineage"].split()),
        row["approval"],
        row["limits"],
    )


def find_valid(tx: Tx, key_ids: Sequence[str], now: int) -> set[str]:
    """Those of the keys that have been neither revoked nor have expired."""
    valid: set[str] = set()
    for start in range(0, len(key_ids), 500):
        is_wanted, wanted = one_of("id", key_ids[start : start + 500])
        rows = tx.all(f"select id, expires_at from keys where {is_wanted}", **wanted)
        valid |= {row["id"] for row in rows if row["expires_at"] is None or row["expires_at"] > now}
    return valid


def list_of_account(tx: Tx, account_id: str) -> list[Key]:
    rows = tx.all("select * from keys where account_id = :id order by created_at, id", id=account_id)
    return [Key.from_row(row) for row in rows]


def list_of_inbox(tx: Tx, inbox_id: str, limit: int, offset: int) -> tuple[list[Key], int]:
    rows = tx.all(
        "select * from keys where inbox_id = :id order by created_at, id limit :limit offset :offset",
        id=inbox_id,
        limit=limit,
        offset=offset,
    )
    return [Key.from_row(row) for row in rows], count_of_inbox(tx, inbox_id)


def count_of_inbox(tx: Tx, inbox_id: str) -> int:
    row = tx.one("select count(*) as keys from keys where inbox_id = :id", id=inbox_id)
    return int(row["keys"]) if row else 0


def require_room(tx: Tx, inbox_id: str) -> None:
    if count_of_inbox(tx, inbox_id) >= KEYS_PER_INBOX:
        raise ApiKeyLimitReached(f"An inbox has at most {KEYS_PER_INBOX} keys. Delete one first.")


def remove(tx: Tx, key_id: str) -> None:
    if not ids.is_id(ids.KEY, key_id) or tx.run("delete from keys where id = :id", id=key_id) == 0:
        raise NotFound("No such key.")


def remove_from_inbox(tx: Tx, inbox_id: str, key_id: str) -> None:
    removed = ids.is_id(ids.KEY, key_id) and tx.run(
        "delete from keys where id = :id and inbox_id = :inbox_id", id=key_id, inbox_id=inbox_id
    )
    if not removed:
        raise NotFound("No such key.")


def remove_all_of_inbox(tx: Tx, inbox_id: str) -> None:
    tx.run("delete from keys where inbox_id = :inbox_id", inbox_id=inbox_id)


def mark_used(tx: Tx, used_at: dict[str, int]) -> None:
    for key_id, moment in used_at.items():
        tx.run("update keys set last_used_at = :moment where id = :id", moment=moment, id=key_id)


def _hash(token: str) -> str:
    """The token is 256 random bits, so a fast hash is as strong as a slow one."""
    return hashlib.sha256(token.encode()).hexdigest()
