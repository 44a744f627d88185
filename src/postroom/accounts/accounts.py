"""Accounts: who owns inboxes and keys, and on which plan."""

from dataclasses import dataclass

from postroom import ids
from postroom.accounts import names
from postroom.accounts.reach import default_pod
from postroom.config import Plan
from postroom.errors import NotFound
from postroom.storage.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Account:
    id: str
    name: str
    plan: Plan
    inbox_count: int
    created_at: int
    approval: str | None = None
    retention_days: int | None = None

    @classmethod
    def from_row(cls, row: Row) -> "Account":
        return cls(
            row["id"],
            row["name"],
            row["plan"],
            row["inbox_count"],
            row["created_at"],
            row["approval"],
            row["retention_days"],
        )


def add(tx: Tx, name: str, plan: Plan, now: int) -> Account:
    names.require_given(name, "name")
    account = Account(ids.new(ids.ACCOUNT, now), name, plan, 0, now)
    tx.run(
        "insert into accounts (id, name, plan, created_at) values (:id, :name, :plan, :now)",
        id=account.id,
        name=name,
        plan=plan,
        now=now,
    )
    tx.run(
        "insert into pods (id, account_id, is_default, created_at) values (:id, :account_id, 1, :now)",
        id=default_pod(account.id),
        account_id=account.id,
        now=now,
    )
    return account


def get(tx: Tx, account_id: str) -> Account:
    row = tx.one("select * from accounts where id = :id", id=account_id)
    if row is None:
        raise NotFound("No such account.")
    return Account.from_row(row)


def put(tx: Tx, account: Account) -> None:
    """Stores what an account may change of itself."""
    names.require_given(account.name, "name")
    tx.run(
        "update accounts set name = :name, approval = :approval, retention_days = :days where id = :id",
        name=account.name,
        approval=account.approval,
        days=account.retention_days,
        id=account.id,
    )


def find(tx: Tx, id_or_name: str) -> Account | None:
    """By id, or by a name that only one account has."""
    if not names.is_clean(id_or_name):
        return None
    rows = tx.all(
        "select * from accounts where id = :it or name = :it order by created_at limit 2", it=id_or_name
    )
    return Account.from_row(rows[0]) if len(rows) == 1 else None


def list_all(tx: Tx) -> list[Account]:
    return [Account.from_row(row) for row in tx.all("select * from accounts order by created_at, id")]


def is_any(tx: Tx) -> bool:
    return tx.one("select 1 as found from accounts limit 1") is not None


def change_inbox_count(tx: Tx, account_id: str, by: int) -> None:
    """Also makes changes to one account's inboxes wait for each other, so that limits are exact."""
    tx.run("update accounts set inbox_count = inbox_count + :by where id = :id", by=by, id=account_id)


def is_first(tx: Tx, account_id: str) -> bool:
    """Whether it is the account that the first start made, or the oldest that is left."""
    row = tx.one("select id from accounts order by id limit 1")
    return row is not None and row["id"] == account_id
