"""Usage: counts per inbox and day, written in the transaction of what they count."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR
from postroom.storage.database import Row, Tx, all_of

RECEIVED, SENT, FAILED, BOUNCED = "received", "sent", "failed", "bounced"
COMPLAINED, HELD, BLOCKED, STORED_BYTES = "complained", "held", "blocked", "stored_bytes"
COUNTERS = (RECEIVED, SENT, FAILED, BOUNCED, COMPLAINED, HELD, BLOCKED, STORED_BYTES)

_SUMS = ", ".join(f"sum({name}) as {name}" for name in COUNTERS)
_ADDED = ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name in COUNTERS)


class UsageGrowth(Struct, frozen=True):
    """By how much a counter of an inbox grows."""

    inbox_id: str
    account_id: str
    pod_id: str
    counter: str
    by: int
    now: int


def count_all(tx: Tx, uses: Iterable[UsageGrowth]) -> None:
    """Count uses: one row per inbox and day, always in the same order, so that nodes cannot deadlock.

    Stored bytes are also counted for the account, which may have a limit.
    """
    sums: dict[tuple[str, int, str, str], dict[str, int]] = {}
    stored: Counter[str] = Counter()
    for use in uses:
        key = (use.inbox_id, use.now // DAY, use.account_id, use.pod_id)
        counts = sums.setdefault(key, dict.fromkeys(COUNTERS, 0))
        counts[use.counter] += use.by
        if use.counter == STORED_BYTES:
            stored[use.account_id] += use.by
    accounts.count_stored(tx, stored)
    tx.many(
        f"insert into usage_days (inbox_id, day, account_id, pod_id, {', '.join(COUNTERS)}) values :rows"
        f" on conflict (inbox_id, day) do update set {_ADDED}",
        [(*key, *counts.values()) for key, counts in sorted(sums.items(), key=lambda each: each[0])],
    )


class GroupUse(Struct, frozen=True):
    """`group` is the number of a day, or the id of an inbox or a pod."""

    group: int | str
    counts: dict[str, int]  # `stored_bytes` is the level at the end


def list_groups(tx: Tx, scope: Scope, group_by: str, first_day: int, last_day: int) -> list[GroupUse]:
    """Groups with activity or stored email, in order; empty days are included."""
    if group_by == "day":
        return _by_day(tx, scope, first_day, last_day)
    column = "inbox_id" if group_by == "inbox" else "pod_id"
    sums = _sums(tx, scope, column, first_day, last_day)
    later = _sums(tx, scope, column, last_day + 1, None)
    levels = _levels(tx, scope, "id" if group_by == "inbox" else "pod_id")
    found = []
    for group in sorted(sums.keys() | levels.keys()):
        counts = _counts(sums.get(group))
        counts[STORED_BYTES] = levels.get(group, 0) - _counts(later.get(group))[STORED_BYTES]
        if any(counts.values()):
            found.append(GroupUse(group, counts))
    return found


def _by_day(tx: Tx, scope: Scope, first_day: int, last_day: int) -> list[GroupUse]:
    """Return the use by day, computed backwards from the total, since a day stores only its change."""
    sums = {int(day): row for day, row in _sums(tx, scope, "day", first_day, None).items()}
    level = sum(_levels(tx, scope, "id").values())
    found = []
    for day in range(max(last_day, max(sums, default=last_day)), first_day - 1, -1):
        counts = _counts(sums.get(day))
        change, counts[STORED_BYTES] = counts[STORED_BYTES], level
        level -= change
        if day <= last_day:
            found.append(GroupUse(day, counts))
    return found[::-1]


def _sums(tx: Tx, scope: Scope, column: str, first_day: int, last_day: int | None) -> dict[int | str, Row]:
    owner, owner_id = scope.owner
    until = "" if last_day is None else " and day <= :last_day"
    rows = tx.all(
        f"select {column} as grouped, {_SUMS} from usage_days"
        f" where {owner} = :owner_id and day >= :first_day{until} group by {column}",
        owner_id=owner_id,
        first_day=first_day,
        **({} if last_day is None else {"last_day": last_day}),
    )
    return {row["grouped"]: row for row in rows}


def _levels(tx: Tx, scope: Scope, column: str) -> dict[int | str, int]:
    owner, owner_id = scope.owner
    rows = tx.all(
        f"select {column} as grouped, sum(stored_bytes) as level from inboxes"
        f" where {'id' if owner == 'inbox_id' else owner} = :owner_id group by {column}",
        owner_id=owner_id,
    )
    return {row["grouped"]: int(row["level"]) for row in rows}


def _counts(row: Row | None) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) if row is None else {name: int(row[name]) for name in COUNTERS}


def last_uses(tx: Tx, account_ids: Sequence[str]) -> dict[str, int | None]:
    """Return when a key of each account was last used, for the operator."""
    rows = all_of(
        tx,
        "select account_id, max(last_used_at) as moment from keys where :wanted group by account_id",
        "account_id",
        account_ids,
    )
    return {row["account_id"]: row["moment"] for row in rows}


class HourCount(Struct, frozen=True):
    """Emails of an inbox in an hour since 1970; `what` is received, sent or failed."""

    inbox_id: str
    hour: int
    what: str
    mails: int


def count_by_hour(tx: Tx, inbox_ids: Sequence[str], since: int) -> list[HourCount]:
    """Count the emails by the hour they came or were written; waiting ones are not counted."""
    rows = all_of(
        tx,
        f"select inbox_id, status, created_at / {HOUR} as hour, count(*) as emails from messages"
        " where :wanted and direction in ('inbound', 'outbound') and is_imported = 0 and status <> 'pending'"
        f" and created_at >= :since group by inbox_id, status, created_at / {HOUR}",
        "inbox_id",
        inbox_ids,
        since=since,
    )
    return [HourCount(row["inbox_id"], int(row["hour"]), row["status"], int(row["emails"])) for row in rows]
