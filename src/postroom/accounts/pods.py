"""Pods: the tenants of an account, each with inboxes, domains and keys of its own."""

from dataclasses import dataclass

from postroom.accounts.reach import Reach
from postroom.storage.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Pod:
    id: str
    account_id: str
    client_id: str | None
    name: str | None
    is_default: bool
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "Pod":
        return cls(
            row["id"],
            row["account_id"],
            row["client_id"],
            row["name"],
            bool(row["is_default"]),
            row["created_at"],
        )


def find(tx: Tx, reach: Reach, id_or_client_id: str) -> Pod | None:
    """Within reach; by its id or by the id that the client gave it."""
    column = "id" if id_or_client_id.startswith("pod_") else "client_id"
    row = "\0" not in id_or_client_id and tx.one(
        f"select * from pods where account_id = :account_id and {column} = :it",
        account_id=reach.account_id,
        it=id_or_client_id,
    )
    if not row or reach.pod_id not in (None, row["id"]):
        return None
    return Pod.from_row(row)


def change_inbox_count(tx: Tx, pod_id: str, by: int) -> None:
    """Also makes changes to one pod's inboxes wait for each other."""
    tx.run("update pods set inbox_count = inbox_count + :by where id = :id", by=by, id=pod_id)
