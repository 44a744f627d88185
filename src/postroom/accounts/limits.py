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

NTH_SEND = "select created_at from messages where inbox_id = :inbox_id and direction = 'outbound'"
NEWEST_FIRST = "order by created_at desc limit 1 offset"


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
    # Behind the newest `limit - count` sends there is another one only if the limit would be passed.
    row = tx.one(
        f"select ({NTH_SEND} and created_at > :minute_ago {NEWEST_FIRST} :minute_offset) as of_minute,"
        f" ({NTH_SEND} and created_at >= :today {NEWEST_FIRST} :day_offset) as of_day",
        inbox_id=inbox_id,
        minute_ago=now - MINUTE,
        minute_offset=max(SENDS_PER_MINUTE - count, 0),
        today=today,
        day_offset=max(SENDS_PER_DAY - count, 0),
    )
    assert row is not None
    of_minute = now if count > SENDS_PER_MINUTE else row["of_minute"]
    if of_minute is not None:
        raise RateLimitExceeded(
            f"An inbox can send {SENDS_PER_MINUTE} mails a minute.",
            retry_after=seconds_until(of_minute + MINUTE, now),
        )
    if row["of_day"] is not None:
        raise RateLimitExceeded(
            f"An inbox can send {SENDS_PER_DAY} mails a day (UTC).",
            retry_after=seconds_until(today + DAY, now),
        )


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
