"""Limits counted from rows, so that a restart forgets nothing."""

from collections.abc import Collection
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom.clock import DAY, HOUR, MINUTE, seconds_until, start_of_day
from postroom.errors import BadRequest, ColdOutreachLimit, LoopDetected, RateLimitExceeded
from postroom.storage.database import Tx

INBOX_CREATIONS_PER_DAY = 100
SENDS_PER_MINUTE = 10
SENDS_PER_DAY = 200
COLD_RECIPIENTS_PER_DAY = 20
COLD_LIMIT_ENDS_AFTER = 30 * DAY
LOOP_REPLIES_PER_HOUR = 20

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


def _up_to(most: int) -> Meta:
    """Only described: `require_valid` checks it, and what is stored is read whatever it says."""
    return Meta(extra_json_schema={"minimum": 0, "maximum": most})


class Budget(Struct, rename="camel", frozen=True):
    """How much an inbox or a key may send, where it is less than the service allows."""

    per_minute: Annotated[int, _up_to(SENDS_PER_MINUTE)] | None = None
    per_day: Annotated[int, _up_to(SENDS_PER_DAY)] | None = None
    cold_per_day: Annotated[int, _up_to(COLD_RECIPIENTS_PER_DAY)] | None = None


class Use(Struct, frozen=True):
    """How much of a limit is used, and when there is room again."""

    limit: int
    used: int
    resets_at: int | None


SERVICE = {"per_minute": SENDS_PER_MINUTE, "per_day": SENDS_PER_DAY, "cold_per_day": COLD_RECIPIENTS_PER_DAY}
FIELDS = {"per_minute": "perMinute", "per_day": "perDay", "cold_per_day": "coldPerDay"}


def require_valid(budget: Budget) -> Budget:
    for name, most in SERVICE.items():
        value = getattr(budget, name)
        if value is not None and not 0 <= value <= most:
            raise BadRequest(f"limits.{FIELDS[name]} must be 0 to {most}.", field="limits")
    return budget


def check_and_encode(budget: Budget | None) -> str | None:
    """What somebody asks for, as it is stored."""
    return encode(None if budget is None else require_valid(budget))


def encode(budget: Budget | None) -> str | None:
    return None if budget is None else msgspec.json.encode(budget).decode()


def decode(stored: str | None) -> Budget:
    return Budget() if stored is None else msgspec.json.decode(stored, type=Budget)


def _least(name: str, budget: Budget) -> int:
    value = getattr(budget, name)
    return SERVICE[name] if value is None else min(value, SERVICE[name])


def require_sends(tx: Tx, owner: str, owner_id: str, budget: Budget, count: int, now: int) -> None:
    """So many in any 60 seconds and a UTC day; `count` are about to be stored, of an inbox or a budget."""
    of_a_minute, of_a_day = _least("per_minute", budget), _least("per_day", budget)
    today = start_of_day(now)
    nth_send = f"select created_at from messages where {owner} = :owner_id and direction = 'outbound'"
    # Behind the newest `limit - count` sends there is another one only if the limit would be passed.
    row = tx.one(
        f"select ({nth_send} and created_at > :minute_ago {NEWEST_FIRST} :minute_offset) as of_minute,"
        f" ({nth_send} and created_at >= :today {NEWEST_FIRST} :day_offset) as of_day",
        owner_id=owner_id,
        minute_ago=now - MINUTE,
        minute_offset=max(of_a_minute - count, 0),
        today=today,
        day_offset=max(of_a_day - count, 0),
    )
    assert row is not None
    of_minute = now if count > of_a_minute else row["of_minute"]
    if of_minute is not None:
        raise RateLimitExceeded(
            f"{_WHO[owner]} can send {of_a_minute} mails a minute.",
            retry_after=seconds_until(of_minute + MINUTE, now),
        )
    if row["of_day"] is not None or count > of_a_day:
        raise RateLimitExceeded(
            f"{_WHO[owner]} can send {of_a_day} mails a day (UTC).",
            retry_after=seconds_until(today + DAY, now),
        )


_WHO = {"inbox_id": "An inbox", "budget_id": "This key"}


def read_uses(tx: Tx, inbox_id: str, inbox_created_at: int, budget: Budget, now: int) -> dict[str, Use]:
    """Of an inbox, against the lower of its budget and what the service allows."""
    today = start_of_day(now)
    in_minute = _moments(tx, inbox_id, now - MINUTE + 1, SENDS_PER_MINUTE)
    in_day = _moments(tx, inbox_id, today, SENDS_PER_DAY)
    cold = _cold_today(tx, inbox_id, today)
    return {
        "per_minute": Use(
            _least("per_minute", budget), len(in_minute), in_minute[-1] + MINUTE if in_minute else None
        ),
        "per_day": Use(_least("per_day", budget), len(in_day), today + DAY),
        "cold_per_day": Use(_least("cold_per_day", budget), len(cold), today + DAY),
    }


def _moments(tx: Tx, inbox_id: str, since: int, limit: int) -> list[int]:
    rows = tx.all(
        "select created_at from messages where inbox_id = :inbox_id and direction = 'outbound'"
        " and created_at >= :since order by created_at desc limit :limit",
        inbox_id=inbox_id,
        since=since,
        limit=limit,
    )
    return [row["created_at"] for row in rows]


def _cold_today(tx: Tx, inbox_id: str, today: int) -> set[str]:
    rows = tx.all(
        "select distinct target from deliveries"
        " where inbox_id = :inbox_id and is_cold = 1 and created_at >= :today",
        inbox_id=inbox_id,
        today=today,
    )
    return {row["target"] for row in rows}


def require_warmth(
    tx: Tx, inbox_id: str, inbox_created_at: int, budget: Budget, cold: Collection[str], now: int
) -> None:
    """A young inbox writes to few strangers a day; a send that would pass the limit is refused whole.

    A budget for strangers holds however old the inbox is.
    """
    is_young = now - inbox_created_at < COLD_LIMIT_ENDS_AFTER
    if not cold or (not is_young and budget.cold_per_day is None):
        return
    today = start_of_day(now)
    most = _least("cold_per_day", budget)
    if len(_cold_today(tx, inbox_id, today) | set(cold)) > most:
        raise ColdOutreachLimit(
            f"This inbox can write to {most} recipients a day (UTC) who never wrote to it.",
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
