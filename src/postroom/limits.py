"""Limits counted from rows, so that a restart forgets nothing."""

from postroom.clock import DAY, seconds_until, start_of_day
from postroom.errors import RateLimitExceeded
from postroom.storage.database import Tx

INBOX_CREATIONS_PER_DAY = 100


def require_inbox_creation(tx: Tx, account_id: str, now: int) -> None:
    today = start_of_day(now)
    row = tx.one(
        "select count(*) as creations from inbox_creations where account_id = :id and created_at >= :today",
        id=account_id,
        today=today,
    )
    assert row is not None
    if row["creations"] >= INBOX_CREATIONS_PER_DAY:
        raise RateLimitExceeded(
            f"An account can create {INBOX_CREATIONS_PER_DAY} inboxes a day (UTC). Try again tomorrow.",
            retry_after=seconds_until(today + DAY, now),
        )
