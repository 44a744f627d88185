"""What each key has sent: how much today, how much of that failed, and its last messages."""

from msgspec import Struct

from postroom.accounts.keys import Key
from postroom.clock import start_of_day
from postroom.storage.database import Tx

# By the index over budgets: a key counts against its own, or against that of the key it descends from.
OF_KEY = "budget_id = :budget_id and key_id = :key_id and direction = 'outbound'"


class SendsOfDay(Struct, frozen=True):
    sent: int
    failed: int


def count_today(tx: Tx, key: Key, now: int) -> SendsOfDay:
    row = tx.one(
        "select count(*) as sent, coalesce(sum(case when status = 'failed' then 1 else 0 end), 0) as failed"
        f" from messages where {OF_KEY} and created_at >= :today",
        budget_id=key.budget_id or key.id,
        key_id=key.id,
        today=start_of_day(now),
    )
    assert row is not None
    return SendsOfDay(int(row["sent"]), int(row["failed"]))


def list_last(tx: Tx, key: Key, limit: int) -> list[str]:
    """List the ids of messages, newest first."""
    rows = tx.all(
        f"select id from messages where {OF_KEY} order by created_at desc, id desc limit :limit",
        budget_id=key.budget_id or key.id,
        key_id=key.id,
        limit=limit,
    )
    return [row["id"] for row in rows]
