"""Checks: stored messages whose event waits for the text of attachments or for answers from DNS."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from postroom.clock import SECOND
from postroom.storage.database import Row, Tx

BELL = "checks"
LEASE = 15 * SECOND  # a node that died holds a check no longer than this


@dataclass(frozen=True, slots=True)
class Check:
    message_id: str
    peer_ip: str
    helo: str
    mail_from: str
    due_at: int

    @classmethod
    def from_row(cls, row: Row) -> "Check":
        return cls(row["message_id"], row["peer_ip"], row["helo"], row["mail_from"], row["due_at"])


def add_all(tx: Tx, new: Iterable[Check]) -> None:
    tx.many(
        "insert into checks (message_id, peer_ip, helo, mail_from, due_at) values :rows",
        [(check.message_id, check.peer_ip, check.helo, check.mail_from, check.due_at) for check in new],
    )


def claim_due(tx: Tx, running: Sequence[Check], limit: int, now: int) -> list[Check]:
    """Takes what is due for the length of a lease; of several nodes one gets each."""
    rows = tx.all(
        "select * from checks where due_at <= :now order by due_at limit :limit", now=now, limit=limit
    )
    return [check for row in rows if _is_claimed(tx, check := Check.from_row(row), now)]


def _is_claimed(tx: Tx, check: Check, now: int) -> bool:
    claimed = tx.run(
        "update checks set due_at = :lease_ends where message_id = :id and due_at = :due_at",
        lease_ends=now + LEASE,
        id=check.message_id,
        due_at=check.due_at,
    )
    return claimed == 1


def renew(tx: Tx, running: Sequence[Check], now: int) -> None:
    for check in running:
        tx.run(
            "update checks set due_at = :lease_ends where message_id = :id",
            lease_ends=now + LEASE,
            id=check.message_id,
        )


def remove(tx: Tx, message_id: str) -> bool:
    """False when another node was first."""
    return tx.run("delete from checks where message_id = :id", id=message_id) == 1
