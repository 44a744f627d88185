"""Suppressions: addresses that an account does not send to."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.errors import NotFound, RecipientSuppressed
from postroom.storage.database import Row, Tx

BOUNCE, COMPLAINT, UNSUBSCRIBED, MANUAL = "bounce", "complaint", "unsub", "manual"
COUNTED_BEYOND_PAGE = 10_000
REASON_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Suppression:
    address: str
    type: str
    created_at: int
    message_id: str | None = None  # the sent mail that caused it
    reason: str | None = None  # what was said of it

    @classmethod
    def from_row(cls, row: Row) -> "Suppression":
        return cls(row["address"], row["type"], row["created_at"], row["message_id"], row["reason"])


def add(
    tx: Tx,
    account_id: str,
    address: str,
    kind: str,
    now: int,
    message_id: str | None = None,
    reason: str | None = None,
) -> Suppression:
    """An address that is suppressed already keeps its first reason."""
    tx.run(
        "insert into suppressions (account_id, address, type, created_at, message_id, reason)"
        " values (:account_id, :address, :kind, :now, :message_id, :reason)"
        " on conflict (account_id, address) do nothing",
        account_id=account_id,
        address=address,
        kind=kind,
        now=now,
        message_id=message_id,
        reason=None if reason is None else reason[:REASON_CHARACTERS],
    )
    found = find(tx, account_id, address)
    assert found is not None
    return found


def find(tx: Tx, account_id: str, address: str) -> Suppression | None:
    row = tx.one(
        "select * from suppressions where account_id = :account_id and address = :address",
        account_id=account_id,
        address=address,
    )
    return None if row is None else Suppression.from_row(row)


def is_suppressed(tx: Tx, account_id: str, address: str) -> bool:
    return find(tx, account_id, address) is not None


def require_none(tx: Tx, recipients: Sequence[tuple[str, str]]) -> None:
    """Pairs of the account that sends and the address."""
    rows = tx.many(
        "select account_id, address, type from (values :rows) as asked cross join suppressions"
        " where account_id = asked.column1 and address = asked.column2",
        recipients,
    )
    found = {(row["account_id"], row["address"]): row["type"] for row in rows}
    for account_id, address in recipients:
        kind = found.get((account_id, address))
        if kind is not None:
            raise RecipientSuppressed(
                f"{address} is on the suppression list ({kind})."
                " DELETE /v1/suppressions/{address} takes it off.",
                type=kind,
                recipient=address,
            )


def list_of_account(tx: Tx, account_id: str, limit: int, offset: int) -> tuple[list[Suppression], int]:
    """Newest first. The total stops counting at ten thousand more than the page shows."""
    rows = tx.all(
        "select * from suppressions where account_id = :account_id"
        " order by created_at desc, address desc limit :limit offset :offset",
        account_id=account_id,
        limit=limit,
        offset=offset,
    )
    row = tx.one(
        "select count(*) as total from"
        " (select 1 from suppressions where account_id = :id limit :most) as counted",
        id=account_id,
        most=offset + limit + COUNTED_BEYOND_PAGE,
    )
    return [Suppression.from_row(row) for row in rows], int(row["total"]) if row else 0


def remove(tx: Tx, account_id: str, address: str) -> None:
    removed = tx.run(
        "delete from suppressions where account_id = :account_id and address = :address",
        account_id=account_id,
        address=address,
    )
    if not removed:
        raise NotFound("This address is not suppressed.")
