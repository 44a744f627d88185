"""Paces: how long to wait between two emails to a provider that asked for less, until it recovers.

The row is shared by all nodes, which a provider sees as one sender, and survives restarts.
"""

from collections.abc import Sequence

from msgspec import Struct

from postroom.clock import DAY, MINUTE, SECOND
from postroom.config import Config
from postroom.storage.database import LOCK_ROWS, Tx, item_from_row, one_of

SLOW_DOWN_CODES = (421, 451)
FULL_SPEED = 100  # milliseconds: a provider this fast is no longer slowed
CREDIT = SECOND  # the loop checks once a second: emails missed meanwhile may go together
WINDOW = 10 * MINUTE  # waiting mail asks again after so long at the latest, since the pace may have changed
FORGOTTEN = DAY


class PaceRules(Struct, frozen=True):
    """How a provider is slowed: the first wait between two emails (0: never), the growth of further waits,
    the longest wait, and by how much each accepted mail shortens it.
    """

    seconds: int = 0
    growth_percent: int = 0
    longest_seconds: int = 0
    recovery_percent: int = 0

    @classmethod
    def of(cls, config: Config) -> "PaceRules":
        return cls(
            config.pace_seconds,
            config.pace_growth_percent,
            config.pace_longest_seconds,
            config.pace_recovery_percent,
        )


class ProviderPace(Struct, frozen=True):
    provider: str
    interval_ms: int
    next_at: int
    backlog_at: int
    slowed_at: int


def find(tx: Tx, provider: str, lock: str = "") -> ProviderPace | None:
    row = tx.one(f"select * from provider_paces where provider = :provider {lock}", provider=provider)
    return None if row is None else item_from_row(ProviderPace, row)


def list_of(tx: Tx, providers: Sequence[str]) -> dict[str, ProviderPace]:
    """Return those of the providers that are slowed."""
    if not providers:
        return {}
    is_wanted, wanted = one_of("provider", providers)
    rows = tx.all(f"select * from provider_paces where {is_wanted}", **wanted)
    return {row["provider"]: item_from_row(ProviderPace, row) for row in rows}


def take_turn(tx: Tx, provider: str, now: int) -> int | None:
    """Return None if an email may go now; else when to ask again. Waiting emails are spread out."""
    pace = find(tx, provider, LOCK_ROWS)
    if pace is None:
        return None
    if pace.next_at <= now:
        _set(tx, provider, next_at=max(pace.next_at, now - CREDIT) + pace.interval_ms)
        return None
    is_in_window = pace.next_at <= pace.backlog_at <= now + WINDOW
    due_at = pace.backlog_at if is_in_window else pace.next_at
    _set(tx, provider, backlog_at=due_at + pace.interval_ms)
    return due_at


def slow_down(tx: Tx, provider: str, started_at: int, rules: PaceRules, now: int) -> bool:
    """Return True if it was at full speed. Of attempts under way together only the first answer counts."""
    if rules.seconds == 0:
        return False
    first = rules.seconds * SECOND
    added = tx.run(
        "insert into provider_paces (provider, interval_ms, next_at, backlog_at, slowed_at)"
        " values (:provider, :interval_ms, :next_at, 0, :now) on conflict (provider) do nothing",
        provider=provider,
        interval_ms=first,
        next_at=now + first,
        now=now,
    )
    pace = find(tx, provider, LOCK_ROWS)
    if added or pace is None:
        return True
    if started_at >= pace.slowed_at:
        longer = pace.interval_ms * (100 + rules.growth_percent) // 100
        interval = min(max(longer, first), rules.longest_seconds * SECOND)
        _set(tx, provider, interval_ms=interval, next_at=max(pace.next_at, now + interval), slowed_at=now)
    return False


def speed_up(tx: Tx, provider: str, rules: PaceRules, now: int) -> bool:
    """Speed up after an accepted email. True if it is at full speed again."""
    pace = find(tx, provider, LOCK_ROWS)
    if pace is None:
        return False
    interval = pace.interval_ms * (100 - rules.recovery_percent) // 100
    if interval < FULL_SPEED:
        tx.run("delete from provider_paces where provider = :provider", provider=provider)
        return True
    _set(tx, provider, interval_ms=interval, next_at=min(pace.next_at, now + interval))
    return False


def _set(tx: Tx, provider: str, **values: int) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in values)
    tx.run(f"update provider_paces set {columns} where provider = :provider", provider=provider, **values)
