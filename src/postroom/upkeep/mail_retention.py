"""Deletes mail past the retention of its inbox or account, in small transactions."""

from collections import defaultdict

from msgspec import Struct

from postroom.clock import DAY
from postroom.mailbox import inboxes, legal_holds
from postroom.mailbox.messages import BLOCKED, INBOUND, OUTBOUND, PENDING
from postroom.storage.database import Tx
from postroom.upkeep import deletion


class RetentionRule(Struct, frozen=True):
    """How long an inbox keeps mail."""

    inbox_id: str
    days: int


def list_rules(tx: Tx, after: str, limit: int) -> list[RetentionRule]:
    """List the rules by id, after the given one. An inbox's own setting overrides its account's."""
    rows = tx.all(
        "select id, retention_days as days from inboxes where retention_days is not null and legal_hold = 0"
        " and id > :after order by id limit :limit",
        after=after,
        limit=limit,
    )
    own = [RetentionRule(row["id"], row["days"]) for row in rows]
    return sorted([*own, *_list_rules_of_accounts(tx, after, limit)], key=lambda rule: rule.inbox_id)[:limit]


def _list_rules_of_accounts(tx: Tx, after: str, limit: int) -> list[RetentionRule]:
    accounts = tx.all("select id, retention_days as days from accounts where retention_days is not null")
    found = []
    for account in accounts:
        rows = tx.all(
            "select id from inboxes where account_id = :id and retention_days is null and legal_hold = 0"
            " and id > :after order by id limit :limit",
            id=account["id"],
            after=after,
            limit=limit,
        )
        found += [RetentionRule(row["id"], account["days"]) for row in rows]
    return found


def expire(tx: Tx, now: int, rows: int, rule: RetentionRule) -> list[str] | None:
    """Deletes some messages. Returns the blobs to remove after the commit; None when nothing is left.

    Mail that waits to be sent stays until it is sent, mail with a legal hold until that is lifted.
    """
    threads: dict[str, list[str]] = defaultdict(list)
    for direction in (INBOUND, OUTBOUND, BLOCKED):  # one by one, as the index needs it
        found = tx.all(
            "select id, thread_id from messages where inbox_id = :inbox_id and created_at < :limit"
            " and direction = :direction and status <> :pending"
            f" and {legal_holds.NOT_OF_THREAD} order by created_at limit :rows",
            inbox_id=rule.inbox_id,
            direction=direction,
            limit=now - rule.days * DAY,
            pending=PENDING,
            rows=rows,
        )
        for row in found:
            threads[row["thread_id"]].append(row["id"])
    if not threads or inboxes.lock(tx, rule.inbox_id).legal_hold:
        return None
    for held in legal_holds.find_held(tx, threads):
        del threads[held]  # since they were read
    return deletion.remove_some(tx, rule.inbox_id, threads, now)
