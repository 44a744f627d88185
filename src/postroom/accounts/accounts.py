"""Accounts: owners of inboxes and keys, with a plan."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import names
from postroom.accounts.scope import default_pod
from postroom.config import Plan
from postroom.errors import NameTaken, NotFound, QuotaExceeded
from postroom.storage.database import LOCK_ROWS, Row, Tx, insert, item_from_row, update, update_item

FIRST = "default"  # the name of the first account, or the one it was created with

OF_ITS_OWN = "name approval retention_days saved_searches junk origin_guard trusted_values disclosure".split()
# A condition on a row of `accounts`: it has a quota and has used it up.
IS_FULL = "accounts.stored_bytes >= accounts.storage_limit_bytes"


class Account(Struct, frozen=True):
    id: str
    name: str
    plan: Plan
    inbox_count: int
    created_at: int
    approval: str | None = None
    retention_days: int | None = None
    stored_bytes: int = 0
    storage_limit_bytes: int | None = None  # None: as much as there is room for
    limits: str | None = None  # what the operator set for it alone
    saved_searches: str = "[]"
    junk: str | None = None
    origin_guard: str | None = None
    trusted_values: str | None = None
    disclosure: str | None = None
    erasure_approval: bool = False  # erasing a contact needs a second person


def _from_row(row: Row) -> Account:
    return item_from_row(Account, row, erasure_approval=bool(row["erasure_approval"]))


def add(tx: Tx, name: str, plan: Plan, now: int) -> Account:
    require_free(tx, name)
    account = Account(ids.new(ids.ACCOUNT, now), name, plan, 0, now)
    insert(tx, "accounts", id=account.id, name=name, plan=plan, created_at=now)
    insert(tx, "pods", id=default_pod(account.id), account_id=account.id, is_default=1, created_at=now)
    return account


def get(tx: Tx, account_id: str) -> Account:
    row = tx.one("select * from accounts where id = :id", id=account_id)
    if row is None:
        raise NotFound("No such account. It may have been deleted.")
    return _from_row(row)


def put(tx: Tx, account: Account) -> None:
    """Stores the fields that an account may change of itself."""
    require_free(tx, account.name, besides=account.id)
    update_item(tx, "accounts", account, OF_ITS_OWN, erasure_approval=int(account.erasure_approval))


def require_free(tx: Tx, name: str, besides: str = "") -> None:
    names.require_given(name, "name")
    if tx.one("select 1 as found from accounts where name = :name and id <> :id", name=name, id=besides):
        raise NameTaken(f"Another account is called '{name}'. Choose another name.")


def rename(tx: Tx, account: Account, name: str) -> Account:
    renamed = replace(account, name=name)
    put(tx, renamed)
    return renamed


def set_plan(tx: Tx, account: Account, plan: Plan) -> Account:
    update(tx, "accounts", account.id, plan=plan)
    return replace(account, plan=plan)


def set_storage_limit(tx: Tx, account: Account, limit_bytes: int | None) -> Account:
    update(tx, "accounts", account.id, storage_limit_bytes=limit_bytes)
    return replace(account, storage_limit_bytes=limit_bytes)


def set_limits(tx: Tx, account: Account, limits: str | None) -> Account:
    update(tx, "accounts", account.id, limits=limits)
    return replace(account, limits=limits)


def count_stored(tx: Tx, changes: Mapping[str, int]) -> None:
    """Adds stored bytes per account; always in the same order, as nodes may do it at the same time."""
    for account_id, by in sorted(changes.items()):
        if by:
            tx.run(
                "update accounts set stored_bytes = stored_bytes + :by where id = :id", by=by, id=account_id
            )


def is_full(tx: Tx, account_id: str) -> bool:
    row = tx.one(f"select 1 as found from accounts where id = :id and {IS_FULL}", id=account_id)
    return row is not None


def require_room(is_full: bool) -> None:
    if is_full:
        raise QuotaExceeded(
            "The account's storage is full. Delete email, shorten retentionDays, or ask the operator for "
            "more."
        )


def find(tx: Tx, id_or_name: str) -> Account | None:
    """Find by id, or by a name that only one account has. `default` is the first one, even if renamed."""
    if not names.is_clean(id_or_name):
        return None
    rows = tx.all(
        "select * from accounts where (id = :it or name = :it) and removed_at is null"
        " order by created_at limit 2",
        it=id_or_name,
    )
    if not rows and id_or_name == FIRST:
        rows = tx.all("select * from accounts order by id limit 1")
    return _from_row(rows[0]) if len(rows) == 1 else None


def list_all(tx: Tx) -> list[Account]:
    rows = tx.all("select * from accounts where removed_at is null order by created_at, id")
    return [_from_row(row) for row in rows]


def is_any(tx: Tx) -> bool:
    return tx.one("select 1 as found from accounts limit 1") is not None


def lock(tx: Tx, account_id: str) -> None:
    """Makes changes to one account wait for each other, so that counts are exact."""
    tx.one(f"select 1 as found from accounts where id = :id {LOCK_ROWS}", id=account_id)


def change_inbox_count(tx: Tx, account_id: str, by: int) -> None:
    """Locks the account, so that limits are exact."""
    tx.run("update accounts set inbox_count = inbox_count + :by where id = :id", by=by, id=account_id)


def find_first(tx: Tx) -> Account | None:
    """Return the account made at the first start, or the oldest account that is left."""
    row = tx.one("select * from accounts order by id limit 1")
    return None if row is None else _from_row(row)


def is_first(tx: Tx, account_id: str) -> bool:
    row = tx.one("select id from accounts order by id limit 1")
    return row is not None and row["id"] == account_id
