"""Limits counted from rows, so that a restart forgets nothing."""

from collections.abc import Collection

from postroom.clock import DAY, HOUR, MINUTE, seconds_until, start_of_day
from postroom.errors import ColdOutreachLimit, LoopDetected, RateLimitExceeded
from postroom.storage.database import Tx

INBOX_CREATIONS_PER_DAY = 100
SENDS_PER_MINUTE = 10
SENDS_PER_DAY = 200
COLD_RECIPIENTS_PER_DAY = 20
COLD_LIMIT_ENDS_AFTER = 30 * DAY
LOOP_REPLIES_PER_HOUR = 20


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


def require_sends(tx: Tx, inbox_id: str, count: int, now: int) -> None:
    """10 in any 60 seconds and 200 a UTC day; `count` are about to be stored."""
    today = start_of_day(now)
    stored = _moments_of_sends(tx, inbox_id, min(today - 1, now - MINUTE), SENDS_PER_DAY)
    sends = [now] * (count - 1) + stored
    if len(sends) >= SENDS_PER_MINUTE and sends[SENDS_PER_MINUTE - 1] > now - MINUTE:
        raise RateLimitExceeded(
            f"An inbox can send {SENDS_PER_MINUTE} mails a minute.",
            retry_after=seconds_until(sends[SENDS_PER_MINUTE - 1] + MINUTE, now),
        )
    if len(sends) >= SENDS_PER_DAY and sends[SENDS_PER_DAY - 1] >= today:
        raise RateLimitExceeded(
            f"An inbox can send {SENDS_PER_DAY} mails a day (UTC).",
            retry_after=seconds_until(today + DAY, now),
        )


def _moments_of_sends(tx: Tx, inbox_id: str, after: int, limit: int) -> list[int]:
    """The newest first."""
    rows = tx.all(
        "select created_at from messages where inbox_id = :inbox_id and direction = 'outbound'"
        " and created_at > :after order by created_at desc limit :limit",
        inbox_id=inbox_id,
        after=after,
        limit=limit,
    )
    return [row["created_at"] for row in rows]


def require_warmth(tx: Tx, inbox_id: str, inbox_created_at: int, cold: Collection[str], now: int) -> None:
    """A young inbox writes to few strangers a day; a send that would pass the limit is refused whole."""
    if not cold or now - inbox_created_at >= COLD_LIMIT_ENDS_AFTER:
        return
    today = start_of_day(now)
    rows = tx.all(
        "select distinct target from deliveries"
        " where inbox_id = :inbox_id and is_cold = 1 and created_at >= :today",
        inbox_id=inbox_id,
        today=today,
    )
    if len({row["target"] for row in rows} | set(cold)) > COLD_RECIPIENTS_PER_DAY:
        raise ColdOutreachLimit(
            f"An inbox younger than 30 days can write to {COLD_RECIPIENTS_PER_DAY} recipients a day (UTC)"
            " who never wrote to it.",
            retry_after=seconds_until(today + DAY, now),
        )


def require_no_loop(tx: Tx, thread_id: str, count: int, now: int) -> None:
    """For a thread whose other side answers by machine: two machines must not talk without end.

    `count` are about to be stored.
    """
    rows = tx.all(
        "select created_at from messages where thread_id = :thread_id and direction = 'outbound'"
        " and created_at > :after order by created_at desc limit :limit",
        thread_id=thread_id,
        after=now - HOUR,
        limit=LOOP_REPLIES_PER_HOUR,
    )
    replies = [now] * (count - 1) + [row["created_at"] for row in rows]
    if len(replies) >= LOOP_REPLIES_PER_HOUR:
        raise LoopDetected(
            f"{LOOP_REPLIES_PER_HOUR} replies within an hour to a sender that answers automatically.",
            retry_after=seconds_until(replies[LOOP_REPLIES_PER_HOUR - 1] + HOUR, now),
        )
