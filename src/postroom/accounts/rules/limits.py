"""Limits counted from rows, so that a restart forgets nothing."""

import functools
import operator
from collections.abc import Collection, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroom.clock import DAY, HOUR, MINUTE, seconds_until, start_of_day
from postroom.config import MOST_OF_A_LIMIT, Config
from postroom.errors import BadRequest, ColdOutreachLimit, LoopDetected, RateLimitExceeded
from postroom.limits import (
    COLD_LIMIT_DAYS,
    COLD_RECIPIENTS_PER_DAY,
    INBOXES_PER_DAY,
    REQUESTS_PER_MINUTE,
    SENDS_PER_DAY,
    SENDS_PER_MINUTE,
)
from postroom.storage.database import Tx

COLD_LIMIT_ENDS_AFTER = COLD_LIMIT_DAYS * DAY
LOOP_REPLIES_PER_HOUR = 20

NEWEST_FIRST = "order by created_at desc limit 1 offset"


class AccountLimits(Struct, rename="camel", frozen=True):
    """What the operator allows an account; null: no limit."""

    sends_per_minute: int | None = SENDS_PER_MINUTE
    sends_per_day: int | None = SENDS_PER_DAY
    cold_per_day: int | None = COLD_RECIPIENTS_PER_DAY
    inboxes_per_day: int | None = INBOXES_PER_DAY
    requests_per_minute: int | None = REQUESTS_PER_MINUTE


SPECIFIED = AccountLimits()
NAMES = AccountLimits.__struct_fields__
_of_server = operator.attrgetter(*NAMES)


def in_force(config: Config, stored: str | None) -> AccountLimits:
    """Return the server's limits, overridden by those of the account. 0 means no limit."""
    return _combine(stored, _of_server(config))


@functools.lru_cache(maxsize=1_000)
def _combine(stored: str | None, of_server: tuple[int, ...]) -> AccountLimits:
    own = decode_own(stored)
    return AccountLimits(*[own.get(name, most) or None for name, most in zip(NAMES, of_server, strict=True)])


def decode_own(stored: str | None) -> dict[str, int]:
    return {} if stored is None else msgspec.json.decode(stored, type=dict[str, int])


def encode_own(own: Mapping[str, int]) -> str | None:
    return msgspec.json.encode(own).decode() if own else None


def require_inbox_creation(tx: Tx, account_id: str, most: int | None, now: int) -> None:
    if most is None:
        return
    today = start_of_day(now)
    row = tx.one(
        "select count(*) as creations from inbox_creations where account_id = :id and created_at >= :today",
        id=account_id,
        today=today,
    )
    assert row is not None
    if row["creations"] >= most:
        raise RateLimitExceeded(
            f"An account can create {most} inboxes a day (UTC). Try again tomorrow.",
            retry_after=seconds_until(today + DAY, now),
        )


# Only described: `require_valid` checks it, and stored values are read in any case.
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MOST_OF_A_LIMIT})]


class Budget(Struct, rename="camel", frozen=True):
    """How much an inbox or a key may send, where it is less than the operator allows."""

    per_minute: Annotated[Count | None, Meta(description="Emails in any 60 seconds.")] = None
    per_day: Annotated[Count | None, Meta(description="Emails a day (UTC).")] = None
    cold_per_day: Annotated[Count | None, Meta(description="New recipients a day.")] = None


class Use(Struct, frozen=True):
    """How much of a limit is used, and when there is room again. None: no limit."""

    limit: int | None
    used: int
    resets_at: int | None


# Fields of a budget: their names in the interface, and the operator's limits above them.
FIELDS = {"per_minute": "perMinute", "per_day": "perDay", "cold_per_day": "coldPerDay"}
ABOVE = {"per_minute": "sends_per_minute", "per_day": "sends_per_day", "cold_per_day": "cold_per_day"}


def require_valid(budget: Budget, allowed: AccountLimits) -> Budget:
    for name, above in ABOVE.items():
        value, most = getattr(budget, name), getattr(allowed, above)
        if most is None:
            most = MOST_OF_A_LIMIT
        if value is not None and not 0 <= value <= most:
            raise BadRequest(f"limits.{FIELDS[name]} must be 0 to {most}.", field="limits")
    return budget


def check_and_encode(budget: Budget | None, allowed: AccountLimits) -> str | None:
    """Validates and encodes it for storage."""
    return encode(None if budget is None else require_valid(budget, allowed))


def encode(budget: Budget | None) -> str | None:
    return None if budget is None else msgspec.json.encode(budget).decode()


def decode(stored: str | None) -> Budget:
    return Budget() if stored is None else msgspec.json.decode(stored, type=Budget)


def _least(name: str, budget: Budget, allowed: AccountLimits) -> int | None:
    found = [value for value in (getattr(budget, name), getattr(allowed, ABOVE[name])) if value is not None]
    return min(found, default=None)


def require_sends(
    tx: Tx,
    owner: str,
    owner_id: str,
    budget: Budget,
    count: int,
    now: int,
    allowed: AccountLimits = SPECIFIED,
) -> None:
    """Limits in any 60 seconds and per UTC day; `count` are about to be stored, of an inbox or a budget."""
    of_a_minute, of_a_day = (_least(name, budget, allowed) for name in ("per_minute", "per_day"))
    if of_a_minute is None and of_a_day is None:
        return
    today = start_of_day(now)
    row = tx.one(
        f"select {_nth_send(owner, 'minute', of_a_minute)} as of_minute,"
        f" {_nth_send(owner, 'day', of_a_day)} as of_day",
        owner_id=owner_id,
        minute_begin=now - MINUTE + 1,
        minute_offset=max((of_a_minute or 0) - count, 0),
        day_begin=today,
        day_offset=max((of_a_day or 0) - count, 0),
    )
    assert row is not None
    of_minute = now if of_a_minute is not None and count > of_a_minute else row["of_minute"]
    if of_minute is not None:
        raise RateLimitExceeded(
            f"{_WHO[owner]} can send {_emails(of_a_minute)} a minute. Try again soon.",
            retry_after=seconds_until(of_minute + MINUTE, now),
        )
    if row["of_day"] is not None or (of_a_day is not None and count > of_a_day):
        raise RateLimitExceeded(
            f"{_WHO[owner]} can send {_emails(of_a_day)} a day (UTC). Try again tomorrow.",
            retry_after=seconds_until(today + DAY, now),
        )


def _emails(count: int | None) -> str:
    return "1 email" if count == 1 else f"{count:,} emails"


def _nth_send(owner: str, span: str, most: int | None) -> str:
    """Return SQL for the time of the send before the newest `most - count`.

    There is one only if the limit would be exceeded.
    """
    if most is None:
        return "null"
    return (
        f"(select created_at from messages where {owner} = :owner_id and direction = 'outbound'"
        f" and created_at >= :{span}_begin {NEWEST_FIRST} :{span}_offset)"
    )


_WHO = {"inbox_id": "An inbox", "budget_id": "This key"}


def read_uses(
    tx: Tx, inbox_id: str, budget: Budget, now: int, allowed: AccountLimits = SPECIFIED
) -> dict[str, Use]:
    """Uses of an inbox, against the lower of its budget and the operator's limit."""
    today = start_of_day(now)
    in_minute, oldest = _count_sends(tx, inbox_id, now - MINUTE + 1)
    in_day, _ = _count_sends(tx, inbox_id, today)
    cold = _cold_today(tx, inbox_id, today)
    return {
        "per_minute": Use(
            _least("per_minute", budget, allowed), in_minute, None if oldest is None else oldest + MINUTE
        ),
        "per_day": Use(_least("per_day", budget, allowed), in_day, today + DAY),
        "cold_per_day": Use(_least("cold_per_day", budget, allowed), len(cold), today + DAY),
    }


def _count_sends(tx: Tx, inbox_id: str, since: int) -> tuple[int, int | None]:
    """Return the number of sends, and when the oldest was accepted."""
    row = tx.one(
        "select count(*) as sends, min(created_at) as oldest from messages where inbox_id = :inbox_id"
        " and direction = 'outbound' and created_at >= :since",
        inbox_id=inbox_id,
        since=since,
    )
    assert row is not None
    return int(row["sends"]), row["oldest"]


def _cold_today(tx: Tx, inbox_id: str, today: int) -> set[str]:
    rows = tx.all(
        "select distinct target from deliveries"
        " where inbox_id = :inbox_id and is_cold = 1 and created_at >= :today",
        inbox_id=inbox_id,
        today=today,
    )
    return {row["target"] for row in rows}


def require_cold_limit(
    tx: Tx,
    inbox_id: str,
    inbox_created_at: int,
    budget: Budget,
    cold: Collection[str],
    now: int,
    allowed: AccountLimits = SPECIFIED,
) -> None:
    """Refuse a send to more new recipients than a young inbox may write to in a day.

    It is refused as a whole.

    A budget for new recipients applies to inboxes of any age.
    """
    is_young = now - inbox_created_at < COLD_LIMIT_ENDS_AFTER
    if not cold or (not is_young and budget.cold_per_day is None):
        return
    today = start_of_day(now)
    most = _least("cold_per_day", budget, allowed)
    if most is not None and len(_cold_today(tx, inbox_id, today) | set(cold)) > most:
        raise ColdOutreachLimit(
            f"This inbox can write to {most} recipients a day (UTC) who never wrote to it."
            " Try again tomorrow.",
            retry_after=seconds_until(today + DAY, now),
        )


def require_no_loop(tx: Tx, thread_id: str, count: int, now: int) -> None:
    """Refuse to store `count` more messages if a thread loops.

    Two automatic senders must not answer each other for ever.
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
            f"{LOOP_REPLIES_PER_HOUR} replies within an hour to a sender that answers automatically."
            " Wait, or have a person look at the thread.",
            retry_after=seconds_until(replies[LOOP_REPLIES_PER_HOUR - 1] + HOUR, now),
        )
