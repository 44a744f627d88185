"""Mail that is older than its inbox, or its account, wants to keep it: deleted in short steps."""

from collections import defaultdict
from dataclasses import dataclass

from postroom.clock import DAY
from postroom.mailbox.messages import BLOCKED, PENDING
from postroom.storage.database import Tx
from postroom.upkeep import deletion


@dataclass(frozen=True, slots=True)
class KeepingTerm:
    """How long an inbox keeps mail."""

    inbox_id: str
    days: int


def list_terms(tx: Tx, after: str, limit: int) -> list[KeepingTerm]:
    """By id, behind one. What an inbox says counts more than what its account says."""
    rows = tx.all(
        "select id, retention_days as days from inboxes where retention_days is not null and id > :after"
        " order by id limit :limit",
        after=after,
        limit=limit,
    )
    own = [KeepingTerm(row["id"], row["days"]) for row in rows]
    return sorted([*own, *_list_terms_of_accounts(tx, after, limit)], key=lambda term: term.inbox_id)[:limit]


def _list_terms_of_accounts(tx: Tx, after: str, limit: int) -> list[KeepingTerm]:
    accounts = tx.all("select id, retention_days as days from accounts where retention_days is not null")
    found = []
    for account in accounts:
        rows = tx.all(
            "select id from inboxes where account_id = :id and retention_days is null and id > :after"
            " order by id limit :limit",
            id=account["id"],
            after=after,
            limit=limit,
        )
        found += [KeepingTerm(row["id"], account["days"]) for row in rows]
    return found


def expire(tx: Tx, now: int, rows: int, term: KeepingTerm) -> list[str] | None:
    """Deletes some of what is too old. Gives blobs to remove after the commit; None when nothing is left.

    What has not left yet stays until it has.
    """
    threads: dict[str, list[str]] = defaultdict(list)
    for wanted in (f"direction <> '{BLOCKED}'", f"direction = '{BLOCKED}'"):  # each has its index
        found = tx.all(
            "select id, thread_id from messages where inbox_id = :inbox_id and created_at < :limit"
            f" and {wanted} and status <> :pending order by created_at limit :rows",
            inbox_id=term.inbox_id,
            limit=now - term.days * DAY,
            pending=PENDING,
            rows=rows,
        )
        for row in found:
            threads[row["thread_id"]].append(row["id"])
    if not threads:
        return None
    return deletion.remove_some(tx, term.inbox_id, threads, now)
