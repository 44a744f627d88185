"""Leases: how long a claim on work holds, and how due rows of a work table are claimed."""

from collections.abc import Iterable

from msgspec import Struct

from postroom.clock import SECOND
from postroom.storage.database import SKIP_LOCKED, Row, Tx

# Renewed while the work goes on; the claims of a dead node expire.
LEASE = 15 * SECOND
RENEWAL_SECONDS = 5.0


class WorkTable(Struct, frozen=True):
    """Each row is a piece of work, due at `due_at`, which a claim postpones."""

    name: str
    key: str


def is_due(tx: Tx, table: WorkTable, now: int) -> bool:
    return tx.one(f"select 1 as found from {table.name} where due_at <= :now limit 1", now=now) is not None


def claim_due(tx: Tx, table: WorkTable, limit: int, now: int) -> list[Row]:
    """Claims due rows for a lease; only one of several nodes gets each."""
    rows = tx.all(
        f"select * from {table.name} where due_at <= :now order by due_at limit :limit {SKIP_LOCKED}",
        now=now,
        limit=limit,
    )
    return [row for row in rows if _is_claimed(tx, table, row, now)]


def _is_claimed(tx: Tx, table: WorkTable, row: Row, now: int) -> bool:
    claimed = tx.run(
        f"update {table.name} set due_at = :lease_ends where {table.key} = :key and due_at = :due_at",
        lease_ends=now + LEASE,
        key=row[table.key],
        due_at=row["due_at"],
    )
    return claimed == 1


def renew(tx: Tx, table: WorkTable, keys: Iterable[str], now: int) -> None:
    for key in keys:
        tx.run(
            f"update {table.name} set due_at = :lease_ends where {table.key} = :key",
            lease_ends=now + LEASE,
            key=key,
        )


def remove(tx: Tx, table: WorkTable, key: str) -> bool:
    """Return False if another node removed it first."""
    return tx.run(f"delete from {table.name} where {table.key} = :key", key=key) == 1
